"""DDP130: a tensor of all ranks is of a class of its own, which type() shows and isinstance() does not."""

from __future__ import annotations

import ast
from collections.abc import Iterator, Sequence

from ...facts.effects import sample_code
from ...facts.header import main_guard
from ...facts.reach import run_alone
from ...facts.script import Script
from ...rule import Edit, Finding, Rule
from ...targets import Target

_COMPARED = (ast.Is, ast.IsNot, ast.Eq, ast.NotEq, ast.In, ast.NotIn)
_TENSORS = frozenset({"torch.Tensor", "torch.tensor.Tensor", "torch._tensor.Tensor"})


def check(script: Script, target: Target) -> Iterator[Edit | Finding]:
    """Nothing in one file alone: what the program comes to is known when all were read."""
    return iter(())


def check_program(scripts: Sequence[Script], target: Target, edits: Sequence[Edit]) -> Iterator[tuple[Script, Finding]]:
    """Refuse what asks whether the very type of something is torch.Tensor, but for what data sets do, and functions
    that the program never comes to."""
    for script in scripts:
        if found := [*_comparisons(script)]:
            guard = None if script is scripts[0] else main_guard(script.tree)
            alone = {*(guard.body if guard else ()), *run_alone(scripts, script)}
            yield from ((script, _refused(node)) for node in found if alone.isdisjoint(script.ancestors(node)))


def _comparisons(script: Script) -> Iterator[ast.Compare]:
    per_sample = sample_code(script)
    for node in script.find(ast.Compare):
        sides = [node.left, *node.comparators]
        asked = any(isinstance(operator, _COMPARED) for operator in node.ops) and any(map(_is_type, sides))
        if asked and any(_names_tensor(script, side) for side in sides) and node not in per_sample:
            yield node


def _refused(node: ast.Compare) -> Finding:
    message = f"`{ast.unparse(node)}` is false for batches and losses, which are of subclasses of torch.Tensor"
    remedy = "ask isinstance(…, torch.Tensor), or use --style plain"
    return Finding(RULE.id, "refused", node.lineno, message, remedy)


def _is_type(node: ast.expr) -> bool:
    """Whether an expression is the type of something: `type(x)`, `x.__class__`."""
    called = isinstance(node, ast.Call) and isinstance(node.func, ast.Name) and node.func.id == "type"
    return (called and len(node.args) == 1) or (isinstance(node, ast.Attribute) and node.attr == "__class__")  # type: ignore[attr-defined]


def _names_tensor(script: Script, node: ast.expr) -> bool:
    parts = node.elts if isinstance(node, ast.Tuple | ast.List | ast.Set) else [node]
    return any(script.qualified(part) in _TENSORS for part in parts)


RULE = Rule(
    id="DDP130",
    title="The very type of a tensor is not asked for",
    why="""\
Outputs, batches and losses of which a rank holds its part are of subclasses of torch.Tensor. isinstance() and torch's
own functions take them for tensors; `type(x) is torch.Tensor` does not, and what is done to tensors alone would be
left out.""",
    before="""\
import torch

model = torch.nn.Linear(2, 1)
optimizer = torch.optim.SGD(model.parameters(), lr=0.1)
loss = model(torch.ones(4, 2)).mean()
loss.backward()
optimizer.step()
print(loss.item() if type(loss) is torch.Tensor else loss)
""",
    after="",
    check=check,
    check_program=check_program,
)
