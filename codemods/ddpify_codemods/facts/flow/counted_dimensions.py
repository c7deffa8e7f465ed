"""Dimensions that are counted by how many a tensor has: `x.dim() - 2`, `tuple(range(1, x.dim()))`."""

from __future__ import annotations

import ast
from collections.abc import Callable, Sequence
from typing import Literal

from ..origins import assigned
from ..script import Script
from .values import Items, Value

_ONE_MORE = 3  # where it is not known how many a tensor has


def made_by(script: Script, node: ast.expr) -> ast.expr:
    """What a name is assigned, where that is done once and nothing puts more into it."""
    made = assigned(script, node) if isinstance(node, ast.Name) else []
    uses = (each for each in script.find(ast.Attribute, ast.Subscript) if isinstance(each.value, ast.Name))
    changed = any(each.value.id == node.id for each in uses) if len(made) == 1 else True  # type: ignore[attr-defined]
    return node if changed else made[0]


def listed_dimensions(value: Value) -> tuple[int, ...] | None:
    """The dimensions that a list or tuple of known numbers holds; None for anything else."""
    lists = value.only(Items)
    if len(lists) != 1 or len(value.things) != 1:
        return None
    items = lists[0]
    assert isinstance(items, Items)
    whole = items.rest is None and not items.grows and items.shape != "dict"
    return _numbers([*items.known.values()]) if whole else None


def _numbers(values: Sequence[Value]) -> tuple[int, ...] | None:
    """The numbers that some values are; None where they are not all known."""
    found = [each.constant for each in values if isinstance(each.constant, int)]
    return tuple(found) if found and len(found) == len(values) else None


def counted(
    node: ast.expr, call: ast.Call, value: Callable[[ast.expr], Value]
) -> int | tuple[int, ...] | Literal["unknown"]:
    """The dimension that is counted from the last, or those that are counted on from one; "unknown" for others.

    Args: what names a dimension; the call that it is given to; what an expression holds there.
    """
    if isinstance(node, ast.Tuple | ast.List):
        return _numbers([value(each) for each in node.elts]) or "unknown"
    if isinstance(node, ast.BinOp) and isinstance(node.op, ast.Sub):
        tensor, less = _counted_tensor(node.left), value(node.right).constant
        if tensor is None or not isinstance(less, int):
            return "unknown"
        dimensions = 0 if _is_of(tensor, call) else value(tensor).dimensions
        return "unknown" if dimensions is None else dimensions - less
    while isinstance(node, ast.Call) and ast.unparse(node.func) in ("tuple", "list") and len(node.args) == 1:
        node = node.args[0]
    if not isinstance(node, ast.Call) or ast.unparse(node.func) != "range" or len(node.args) != 2:
        return "unknown"
    ends = _numbers([value(each) for each in node.args])
    if ends is not None:
        return tuple(range(*ends)) or "unknown"
    tensor, first = _counted_tensor(node.args[1]), value(node.args[0]).constant
    if tensor is None or first not in (1, 2):
        return "unknown"
    dimensions = value(tensor).dimensions or (_ONE_MORE if _is_of(tensor, call) else 0)
    return tuple(range(int(first), dimensions)) or "unknown"  # none are all


def _is_of(tensor: ast.expr, call: ast.Call) -> bool:
    """Whether a call counts the dimensions of a tensor: `x` in `x.sum(x.dim() - 1)`, `torch.sum(x, x.dim() - 1)`.

    `unsqueeze` counts those of what it makes.
    """
    owner, name = ast.unparse(call.func).rpartition(".")[::2]
    named = [word.value for word in call.keywords if word.arg == "input"]
    given = {owner, *map(ast.unparse, (*call.args[:1], *named))}
    return name != "unsqueeze" and ast.unparse(tensor) in given


def _counted_tensor(node: ast.expr) -> ast.expr | None:
    """The tensor whose number of dimensions an expression is: `x.dim()`, `x.ndim`, `len(x.shape)`; None for others."""
    if isinstance(node, ast.Call) and ast.unparse(node.func) == "len" and len(node.args) == 1:
        sizes = node.args[0].func if isinstance(node.args[0], ast.Call) else node.args[0]
        return sizes.value if isinstance(sizes, ast.Attribute) and sizes.attr in ("shape", "size") else None
    named = node.func if isinstance(node, ast.Call) and not node.args else node
    counts = isinstance(named, ast.Attribute) and named.attr in ("dim", "ndim", "ndimension")
    return named.value if counts and isinstance(named, ast.Attribute) else None
