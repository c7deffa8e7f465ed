"""Dimensions that are counted by how many a tensor has: `x.dim() - 2`, `tuple(range(1, x.dim()))`."""

from __future__ import annotations

import ast
from collections.abc import Callable
from typing import Literal

from .values import Value

_ONE_MORE = 3  # where it is not known how many a tensor has


def counted(
    node: ast.expr, call: ast.Call, value: Callable[[ast.expr], Value]
) -> int | tuple[int, ...] | Literal["unknown"]:
    """The dimension that is counted from the last, or those that are counted on from one; "unknown" for others.

    Args: what names a dimension; the call that it is given to; what an expression holds there.
    """
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
