"""DDP701: the script joins no process group, and no longer silences the other ranks."""

from __future__ import annotations

import ast
from collections.abc import Iterator

from ...facts.plain_code import is_for_others, is_statement, starts_torchrun
from ...facts.script import Script
from ...rule import Delete, Edit, Finding, Rule
from ...targets import Target

_LOCAL = "int(os.environ['LOCAL_RANK'])"


def check(script: Script, target: Target) -> Iterator[Edit | Finding]:
    """Take out what joins and leaves the group, and what is for other ranks than the first."""
    around = {ast.unparse(ast.parse(line)) for line in target.plain_environment}
    for node in script.find(ast.stmt):
        if is_statement(script, node, "init_process_group", "destroy_process_group"):
            yield Delete(node, "leave out the process group")
        elif starts_torchrun(node):
            yield Delete(node, "start no processes")
        elif is_for_others(script, node):
            yield Delete(node, "leave out what is for the other ranks")
        elif isinstance(node, ast.Expr) and (_takes_device(script, node, target) or ast.unparse(node) in around):
            yield Delete(node, "leave out what a launcher decides")
        elif isinstance(node, ast.Import) and [f"import {each.name}" for each in node.names] == [*target.plain_modules]:
            yield Delete(node, "leave out what the process group needs")


def _takes_device(script: Script, node: ast.Expr, target: Target) -> bool:
    """Whether a statement takes this process's device: `torch.cuda.set_device(int(os.environ["LOCAL_RANK"]))`."""
    call = node.value
    if not target.module or not isinstance(call, ast.Call) or script.qualified(call.func) != f"{target.module}.set_device":
        return False
    return [ast.unparse(each) for each in call.args] == [_LOCAL]


RULE = Rule(
    id="DDP701",
    title="Leave torch's process group out",
    why="""\
The inverse of DDP601: one process joins nothing, takes the usual device and prints. A seed that the conversion put in
stays, since it looks like one of the script's own (S1).""",
    before="""\
@@numpy_seed
""",
    after="",
    check=check,
    target="none",
)
