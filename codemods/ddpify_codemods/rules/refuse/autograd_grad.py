"""DDP305: gradients that are computed past `.backward()` (L14, L15)."""

from __future__ import annotations

import ast
from collections.abc import Iterator

from ...facts.script import Script
from ...rule import Edit, Finding, Rule
from ...targets import Target

_FUNCTIONAL = ("torch.func.", "functorch.", "higher.", "torch.autograd.functional.", "learn2learn.")
_FUNCTIONS = frozenset({"torch.autograd.Function", "torch.autograd.function.Function"})
_FUNCTIONAL_CALL = "torch.nn.utils.stateless.functional_call"


def check(script: Script, target: Target) -> Iterator[Edit | Finding]:
    """Refuse functional gradients."""
    for call in script.find(ast.Call):
        name = script.qualified(call.func)
        if (name.startswith(_FUNCTIONAL) or name == _FUNCTIONAL_CALL) and not _in_autograd_function(script, call):
            message = f"{name} computes with the parameters outside of the module"
            remedy = "write the training step with loss.backward() and optimizer.step()"
            yield Finding(
                RULE.id, "refused", call.lineno, f"{message}, so it is not averaged over the processes", remedy
            )


def _in_autograd_function(script: Script, call: ast.Call) -> bool:
    """Whether it serves a torch.autograd.Function, whose backward hands the gradient on to `.backward()`."""
    around = [parent for parent in script.ancestors(call) if isinstance(parent, ast.ClassDef)]
    return any(script.qualified(base) in _FUNCTIONS for each in around for base in each.bases)


RULE = Rule(
    id="DDP305",
    title="Functional gradients are not converted",
    why="""\
Gradients are averaged while `.backward()` fills `.grad`. What torch.func or higher return never passes there, and they
compute with parameters outside of their module; each process would go its own way (L15). torch.autograd.grad is
converted (DDP127).""",
    before="""\
import torch

model = torch.nn.Linear(2, 1)
optimizer = torch.optim.SGD(model.parameters(), lr=0.1)
loss = torch.func.functional_call(model, dict(model.named_parameters()), (torch.ones(4, 2),)).mean()
loss.backward()
optimizer.step()
""",
    after="",
    check=check,
)
