"""DDP307: nobody answers a question that several processes ask (P10)."""

from __future__ import annotations

import ast
from collections.abc import Iterator

from ...facts.script import Script
from ...rule import Edit, Finding, Rule
from ...targets import Target

_QUESTIONS = frozenset({"input", "raw_input", "getpass.getpass"})
_DEBUGGERS = frozenset({"breakpoint", "pdb.set_trace", "ipdb.set_trace", "IPython.embed"})


def check(script: Script, target: Target) -> Iterator[Edit | Finding]:
    """Refuse calls that wait for the keyboard; warn of debuggers, which scripts keep for a day that may not come, and
    of what a notebook has left."""
    bound = {node.id for node in script.find(ast.Name) if isinstance(node.ctx, ast.Store)}
    bound |= {node.arg for node in script.find(ast.arg)} | script.defined
    for call in script.find(ast.Call):
        name = script.qualified(call.func)
        if name in _QUESTIONS and name not in bound:
            message = f"{name}() waits for somebody at the keyboard; the other processes have none"
            remedy = "take the value from a command line argument"
            yield Finding(RULE.id, "refused", call.lineno, message, remedy)
        elif name in _DEBUGGERS:
            message = f"{name}() stops one process, and the others wait for it"
            yield Finding(RULE.id, "warning", call.lineno, message, "debug the script as one process")
    commands = (call for call in script.find(ast.Call) if script.qualified(call.func) == "get_ipython")
    asked = (ast.Try, ast.If, ast.IfExp)
    alone = [call for call in commands if not any(isinstance(each, asked) for each in script.ancestors(call))]
    if alone and "get_ipython" not in bound:
        message = "get_ipython() is known in a notebook alone: started as a script, this ends with a NameError"
        first = min(call.lineno for call in alone)
        yield Finding(RULE.id, "warning", first, message, "take the lines of it out, which an export of a notebook has")


RULE = Rule(
    id="DDP307",
    title="Scripts that ask questions are not converted",
    why="""\
Started on several devices, a script has no keyboard, or only one of its processes has: the others wait for ever or
read the end of a file (P10). What notebooks ask IPython for, no script has.""",
    before="""\
import torch

epochs = int(input("epochs? "))
model = torch.nn.Linear(2, 1)
optimizer = torch.optim.SGD(model.parameters(), lr=0.1)
for _ in range(epochs):
    model(torch.ones(4, 2)).mean().backward()
    optimizer.step()
""",
    after="",
    check=check,
)
