"""Tensors with their samples along the second dimension, steps or layers in front, whose sizes are given anew."""

from __future__ import annotations

import ast
from collections.abc import Sequence
from typing import Literal

from ..script import Script
from .layout import axis
from .operation_names import LAYOUTS
from .values import SAME, Value, entries


def _counts_anew(script: Script, given: Sequence[ast.expr], owner: Value) -> bool:
    """Whether what lies in front of the samples gets a size that is computed: `x.view(steps // 2, len(x), -1)`; by a
    name only where a number is counted with: `steps = steps // 2`, not `pixels = height * width`. A number that is
    written down may be another one than there are steps."""
    sizes = given[0].elts if len(given) == 1 and isinstance(given[0], ast.Tuple) else given
    first = sizes[0] if sizes else None
    if isinstance(first, ast.Constant) and len(sizes) > 2:
        return first.value != 1 if owner.front == "one" else first.value == 1 or owner.front == ""
    if not isinstance(first, ast.Name):
        return isinstance(first, ast.BinOp)
    stores = script.stores.get((script.scope(first), first.id), ())
    return any(_is_counted(script.statement(each)) for each in stores if each.lineno <= first.lineno)


def regroups(owner: Value, args: Sequence[Value], script: Script, given: Sequence[ast.expr]) -> bool:
    """Whether rows of several samples are taken for those of one: `x.view(len(x), -1)` where the samples do not lie
    along the first dimension, `hidden.view(-1, 2 * size)` of two layers, `x.view(steps // 2, len(x), -1)`.

    Args: the tensor; its new sizes, as values and as the source has them.
    """
    sizes = [each for value in args for each in (entries([value])[1:] or [value])]
    if axis(owner.kind) == 0 or not sizes:
        return False
    if axis(owner.kind) == 1 and sizes[0].kind != "size" and _counts_anew(script, given, owner):
        return True
    if owner.front == "one":
        return False
    if any(isinstance(each, ast.Starred) for each in given):
        return True
    if sizes[0].kind == "size":
        return not _is_product(script, given[0])
    several = owner.front == "layers" and sizes[0].constant == -1
    return several and len(sizes) > 1 and not any(each.kind == "size" for each in sizes)


def takes_apart(owner: Value, args: Sequence[Value], script: Script, given: Sequence[ast.expr]) -> bool:
    """Whether what was made one dimension becomes steps and samples again, as many steps as a tensor is seen to have:
    `x.flatten(0, 1).view(x.size(0), len(x[0]), -1)`."""
    sizes = [each for value in args for each in (entries([value])[1:] or [value])]
    nodes = given[0].elts if len(given) == 1 and isinstance(given[0], ast.Tuple) else given
    in_front = owner.front == "merged" and len(sizes) == len(nodes) > 1 and sizes[1].kind == "size"
    if not in_front or sizes[0].kind != "same":
        return False
    steps, samples = (_size_of(script, each) for each in nodes[:2])
    return steps is not None and samples is not None and (steps, samples) == ((steps[0], 0), (steps[0], 1))


def _size_of(script: Script, node: ast.expr) -> tuple[str, int] | None:
    """Of which tensor a number is the size, and along which dimension: `x.size(0)`, `len(x[0])`, `steps` of
    `steps, batch = x.shape`."""
    if isinstance(node, ast.Name):
        stores = script.stores.get((script.scope(node), node.id), ())
        made = script.statement(stores[0]) if len(stores) == 1 else None
        if not isinstance(made, ast.Assign) or len(made.targets) != 1:
            return None
        target = made.targets[0]
        if isinstance(target, ast.Name):
            return _size_of(script, made.value) if not isinstance(made.value, ast.Name) else None
        names = [ast.unparse(each) for each in target.elts] if isinstance(target, ast.Tuple) else []
        tensor = _shape_of(made.value)
        return (tensor, names.index(node.id)) if tensor and names.count(node.id) == 1 else None
    if isinstance(node, ast.Call) and ast.unparse(node.func) == "len" and len(node.args) == 1:
        of = node.args[0]
        first = isinstance(of, ast.Subscript) and isinstance(of.slice, ast.Constant) and of.slice.value == 0
        return (ast.unparse(of.value), 1) if first else (ast.unparse(of), 0)  # type: ignore[attr-defined]
    at = node.args[0] if isinstance(node, ast.Call) and len(node.args) == 1 else getattr(node, "slice", None)
    tensor = _shape_of(node.value if isinstance(node, ast.Subscript) else node)
    return (tensor, at.value) if tensor and isinstance(at, ast.Constant) and isinstance(at.value, int) else None


def _shape_of(node: ast.expr) -> str:
    """The tensor of `x.shape`, `x.shape[:2]`, `x.size()` and `x.size(0)`; "" for others."""
    if isinstance(node, ast.Subscript) and isinstance(node.slice, ast.Slice) and node.slice.lower is None:
        node = node.value
    named = node.func if isinstance(node, ast.Call) else node
    of_size = isinstance(named, ast.Attribute) and named.attr == ("size" if isinstance(node, ast.Call) else "shape")
    return ast.unparse(named.value) if of_size else ""  # type: ignore[attr-defined]


def _is_product(script: Script, size: ast.expr) -> bool:
    """Whether a size is that of several dimensions made one: `steps * len(x)`."""
    if isinstance(size, ast.Tuple | ast.List):
        size = size.elts[0]
    if isinstance(size, ast.Name):
        stores = script.stores.get((script.scope(size), size.id), ())
        return any(isinstance(getattr(script.statement(each), "value", None), ast.BinOp) for each in stores)
    return isinstance(size, ast.BinOp)


def front_of(name: str, owner: Value, args: Sequence[Value]) -> Literal["", "one", "layers", "merged"]:
    """What lies in front of the samples of what an operation has made of a tensor."""
    sizes = [each for value in args for each in (entries([value])[1:] or [value])]
    first = sizes[0] if sizes else SAME
    if axis(owner.kind) == 0:
        put_in_front = name == "unsqueeze" or (name in ("view", "reshape") and first.constant == 1)
        return "one" if put_in_front else ""
    if name in ("flatten", "ravel", "view", "reshape"):
        into_one = (first.constant or 0) == 0 if name in ("flatten", "ravel") else first.constant == -1
        into_one |= name in ("view", "reshape") and first.kind == "size"
        behind = owner.front == "merged" or (axis(owner.kind) == 1 and owner.front != "one")
        return "merged" if into_one and behind else "layers" if owner.front == "layers" else ""
    kept = name not in LAYOUTS or name == "squeeze" or owner.front == "layers"
    return owner.front if kept else ""


def _is_counted(statement: ast.stmt) -> bool:
    """Whether a name gets part of a number, or a multiple: `steps //= 2`, `half = int(steps / 2)`."""
    value = statement.value if isinstance(statement, ast.Assign | ast.AugAssign) else None
    if isinstance(value, ast.Call) and ast.unparse(value.func) == "int" and value.args:
        value = value.args[0]
    counted = statement if isinstance(statement, ast.AugAssign) else value
    if not isinstance(counted, ast.BinOp | ast.AugAssign) or not isinstance(
        counted.op, ast.Mult | ast.Div | ast.FloorDiv
    ):
        return False
    parts = [value] if counted is statement else [getattr(counted, "left", None), getattr(counted, "right", None)]
    return isinstance(counted.op, ast.Div | ast.FloorDiv) or any(isinstance(each, ast.Constant) for each in parts)
