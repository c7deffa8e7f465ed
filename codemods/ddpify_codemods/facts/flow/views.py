"""Tensors with their samples along the second dimension, steps or layers in front, whose sizes are given anew."""

from __future__ import annotations

import ast
from collections.abc import Sequence
from typing import Literal

from ..script import Script
from .layout import axis
from .operation_names import LAYOUTS
from .values import SAME, Value, entries


def counts_anew(script: Script, node: ast.Call) -> bool:
    """Whether what lies in front of the samples gets a size that is computed: `x.view(steps // 2, len(x), -1)`; by a
    name only where a number is counted with: `steps = steps // 2`, not `pixels = height * width`."""
    sizes = node.args[0].elts if len(node.args) == 1 and isinstance(node.args[0], ast.Tuple) else node.args
    first = sizes[0] if sizes else None
    if not isinstance(first, ast.Name):
        return isinstance(first, ast.BinOp)
    stores = script.stores.get((script.scope(first), first.id), ())
    return any(_is_counted(script.statement(each)) for each in stores if each.lineno <= first.lineno)


def regroups(owner: Value, args: Sequence[Value], script: Script, given: Sequence[ast.expr]) -> bool:
    """Whether rows of several samples are taken for those of one: `x.view(len(x), -1)` where the samples do not lie
    along the first dimension, `hidden.view(-1, 2 * size)` of two layers.

    Args: the tensor; its new sizes, as values and as the source has them.
    """
    sizes = [each for value in args for each in (entries([value])[1:] or [value])]
    if axis(owner.kind) == 0 or owner.front == "one" or not sizes:
        return False
    if any(isinstance(each, ast.Starred) for each in given):
        return True
    if sizes[0].kind == "size":
        return not _is_product(script, given[0])
    several = owner.front == "layers" and sizes[0].constant == -1
    return several and len(sizes) > 1 and not any(each.kind == "size" for each in sizes)


def _is_product(script: Script, size: ast.expr) -> bool:
    """Whether a size is that of several dimensions made one: `steps * len(x)`."""
    if isinstance(size, ast.Tuple | ast.List):
        size = size.elts[0]
    if isinstance(size, ast.Name):
        stores = script.stores.get((script.scope(size), size.id), ())
        given = [getattr(script.statement(each), "value", None) for each in stores]
    else:
        given = [size]
    return any(isinstance(each, ast.BinOp) and isinstance(each.op, ast.Mult) for each in given)
