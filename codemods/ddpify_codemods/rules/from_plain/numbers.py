"""DDP705: numbers of one process are those of all."""

from __future__ import annotations

import ast
from collections.abc import Iterator

from ...facts.plain_code import helpers, is_helper, is_rank_0
from ...facts.script import Script
from ...rule import Delete, Edit, Finding, Replace, Rule
from ...targets import Target
from .rank_zero import is_bare

_MESSAGE = "the numbers of one process are those of all"


def check(script: Script, target: Target) -> Iterator[Edit | Finding]:
    """Take out the functions that bring numbers together, and their calls."""
    own = helpers(script)
    for function in script.find(ast.FunctionDef):
        if function.name in own:
            yield Delete(function, "leave out what brings numbers together")
    for statement in script.find(ast.Assign):
        if _brings_together(script, statement):
            yield Delete(statement, _MESSAGE)
        elif (use := _named_for_rank_0(script, statement)) is not None:
            yield Delete(statement, "")
            yield Replace(use, ast.unparse(statement.value.args[0]), _MESSAGE)  # type: ignore[attr-defined]
    for call in script.find(ast.Call):
        if is_helper(script, call):
            yield Replace(call, "{}", _MESSAGE, parts=(call.args[0],), bare=is_bare(script, call, call.args[0]))


def _brings_together(script: Script, node: ast.Assign) -> bool:
    """Whether a variable is only brought together: `total = sum_over_ranks(total)`, as a dictionary or list too."""
    name, value = ast.unparse(node.targets[0]), node.value
    if len(node.targets) != 1:
        return False
    if isinstance(value, ast.DictComp) and is_helper(script, value.value):
        helper = ast.unparse(value.value.func)  # type: ignore[attr-defined]
        return ast.unparse(value) == f"{{key: {helper}(value) for key, value in {name}.items()}}"
    if isinstance(value, ast.Call) and ast.unparse(value.func) == "list" and len(value.args) == 1:
        inner = value.args[0]
        return is_helper(script, inner) and ast.unparse(inner.args[0]) == f"torch.stack({name})"  # type: ignore[attr-defined]
    return is_helper(script, value) and ast.unparse(value.args[0]) == name  # type: ignore[attr-defined]


def _named_for_rank_0(script: Script, node: ast.Assign) -> ast.Name | None:
    """For `mean_loss = mean_over_ranks(loss.item())` above what rank 0 logs, the place where that number is read."""
    target, parent = node.targets[0], script.parents[node]
    if not isinstance(target, ast.Name) or not is_helper(script, node.value) or len(node.targets) != 1:
        return None
    block = next((each for _, each in ast.iter_fields(parent) if isinstance(each, list) and node in each), [])
    after = [each for each in block[block.index(node) + 1 :] if isinstance(each, ast.If)][:1] if block else []
    uses = [each for each in script.find(ast.Name) if each.id == target.id and each is not target]
    if len(uses) != 1 or not after or not is_rank_0(script, after[0].test):
        return None
    inside = isinstance(uses[0].ctx, ast.Load) and uses[0] in set(ast.walk(after[0]))
    return uses[0] if inside and target.id.startswith(("mean_", "sum_")) else None


RULE = Rule(
    id="DDP705",
    title="Take numbers as they are",
    why="""\
The inverse of DDP605 and DDP614. The functions are known by what they do: a sum or a mean over one process is the number
itself (E2), and what rank 0 has is what there is.""",
    before="""\
@@numbers
""",
    after="",
    check=check,
    target="none",
)
