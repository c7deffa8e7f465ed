"""Models that have a second name, by which training may call them: `compiled_model = torch.compile(model)`; and those
that training calls as a part of another module, `trainer = Diffusion(net)`, which is wrapped with them."""

from __future__ import annotations

import ast
from collections.abc import Set
from typing import Any

from ..bindings import bindings
from ..eager import is_move
from ..optimizers import Optimizer
from ..script import Script
from ..trained_modules import Base


def by_other_name(
    script: Script, optimizer: Optimizer, base: Base, whole: Set[ast.AST]
) -> tuple[Optimizer, Base] | None:
    """A model by the one other name that it gets where its optimizer is made, and what it has to be wrapped before;
    None where it gets none, or several.

    whole: the calls that make what the trained models are, or are parts of.
    """
    scope = script.scope(optimizer.call)
    made = bindings(script, scope).items()
    others = {name: [each for each in values if not is_for_several(each, name)] for name, values in made}
    others.pop(base.code, None)
    found = [name for name, values in others.items() if len(values) == 1 and _is_model(script, values[0], base, whole)]
    stored = [node for node in script.find(ast.Name) if [node.id] == found and _is_given(script, node)]
    if len(stored) != 1 or script.scope(stored[0]) is not scope:
        return None
    named, at = script.statement(stored[0]), script.statement(optimizer.call)
    other = Base(stored[0].id, stored[0])
    if not isinstance(named, ast.Assign) or not isinstance(base.node, ast.Name):
        return None
    if named.lineno < at.lineno:
        return Optimizer(optimizer.call, (other,), False), other
    block = next(each for each in _blocks(script.parents[named]) if named in each)
    after: Any = block[block.index(named) + 1] if block[-1] is not named else None
    return None if after is None else (Optimizer(after, (other,), False), other)


def _is_given(script: Script, node: ast.Name) -> bool:
    """Whether a name is given a value other than a wrapper for several GPUs."""
    stored = script.parents[node]
    wraps = isinstance(stored, ast.Assign) and is_for_several(stored.value, node.id)
    return not isinstance(node.ctx, ast.Load) and not wraps


def is_for_several(node: ast.expr, name: str) -> bool:
    """Whether it is a wrapper for several GPUs, which DDP613 leaves out: `model = nn.DataParallel(model)`."""
    if not isinstance(node, ast.Call) or not ast.unparse(node.func).endswith("nn.DataParallel"):
        return False
    return [ast.unparse(each) for each in node.args[:1]] == [name]


def _is_model(script: Script, node: ast.expr, base: Base, whole: Set[ast.AST]) -> bool:
    """Whether an expression is the model, the same one compiled, or what it is a part of, moved to a device or not."""
    if isinstance(node, ast.IfExp):
        return _is_model(script, node.body, base, whole) and _is_model(script, node.orelse, base, whole)
    if node in whole or (is_move(node) and node.func.value in whole):  # type: ignore[attr-defined]
        return True
    if isinstance(node, ast.Call) and script.qualified(node.func) == "torch.compile" and node.args:
        node = node.args[0]
    return isinstance(node, ast.Name) and node.id == base.code


def _blocks(node: ast.AST) -> list[list[ast.stmt]]:
    blocks = (getattr(node, name, None) for name in ("body", "orelse", "finalbody"))
    return [each for each in blocks if isinstance(each, list)]
