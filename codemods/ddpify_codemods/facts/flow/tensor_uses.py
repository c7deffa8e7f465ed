"""Whether a part of a batch can only be a tensor, by what the program does with it: `x.to(device)`, `criterion(x, y)`.

Of `x[0]` nothing else says whether it is the first sample, or the first of several tensors.
"""

from __future__ import annotations

import ast
from collections.abc import Callable, Iterator

from ..script import Script
from ..tree import names_and_parts

_OF_TENSORS = frozenset(
    {"to", "cuda", "cpu", "float", "double", "long", "half", "bool", "int", "type", "view", "reshape", "flatten"}
    | {"size", "shape", "dim", "ndim", "numel", "permute", "transpose", "unsqueeze", "squeeze", "item", "numpy"}
    | {
        "detach",
        "clone",
        "contiguous",
        "requires_grad_",
        "argmax",
        "eq",
        "ne",
        "mean",
        "sum",
        "max",
        "min",
        "std",
        "data",
    }
)
_GIVE_SEVERAL = frozenset({"max", "min", "size"})
_ASK = frozenset({"isinstance", "type", "hasattr"})
_OF_SEVERAL = frozenset({"cat", "concat", "stack", "hstack", "vstack", "save", "as_tensor", "tensor"})


TakesTensor = Callable[[ast.Call, int], bool]  # of a call and the place of an argument: whether that is a tensor


def is_tensor_here(script: Script, node: ast.expr, takes_tensor: TakesTensor) -> bool:
    """Whether a name, or a part of what it holds, is used as a tensor while it holds the same.

    takes_tensor: whether the function of a call takes tensors alone at a place, as layers of torch do.
    """
    if isinstance(node, ast.Call):
        return isinstance(node.func, ast.Attribute) and node.func.attr in _OF_TENSORS - _GIVE_SEVERAL
    name = _name(node)
    if name is None:
        return False
    scope, code = script.scope(node), ast.unparse(node)
    bound = _bound(script, scope, name)
    value = _assigned(bound, name) if code == name.id else None
    if value is not None and is_tensor_here(script, value, takes_tensor):
        return True
    return any(
        _last(bound, each) == _last(bound, name) and _takes_tensors(script, each, takes_tensor)
        for each in names_and_parts(scope)[type(node)]
        if each is not node and (each.id if isinstance(each, ast.Name) else ast.unparse(each)) == code
    )


def is_taken_apart(script: Script, node: ast.expr) -> bool:
    """Whether a name holds several tensors: it is unpacked, `x, y = data`, or asked by texts, `data["image"]`, while it
    holds the same."""
    if not isinstance(node, ast.Name):
        return False
    scope = script.scope(node)
    bound = _bound(script, scope, node)
    same = (each for each in names_and_parts(scope)[ast.Name] if isinstance(each, ast.Name) and each.id == node.id)
    return any(_last(bound, each) == _last(bound, node) and _takes_apart(script.parents[each], each) for each in same)


def _takes_apart(parent: ast.AST, name: ast.Name) -> bool:
    if isinstance(parent, ast.Subscript):
        return parent.value is name and isinstance(parent.slice, ast.Constant) and isinstance(parent.slice.value, str)
    if not isinstance(parent, ast.Assign) or parent.value is not name:
        return False
    return isinstance(parent.targets[0], ast.Tuple | ast.List)


def _name(node: ast.expr) -> ast.Name | None:
    """The name of which a node is a part by constant keys, `batch["image"]`; None for others."""
    while isinstance(node, ast.Subscript) and isinstance(node.slice, ast.Constant):
        node = node.value
    return node if isinstance(node, ast.Name) else None


def is_tensor_given(script: Script, function: ast.AST, parameter: str, takes_tensor: TakesTensor) -> bool:
    """Whether a parameter of a function is used as a tensor, and nothing asks whether it is one."""
    loads = (each for each in names_and_parts(function)[ast.Name] if isinstance(each, ast.Name))
    names = [each for each in loads if each.id == parameter]
    calls = [call for each in names if isinstance(call := script.parents[each], ast.Call)]
    if any(isinstance(call.func, ast.Name) and call.func.id in _ASK for call in calls):
        return False
    return any(
        _last(_bound(script, function, each), each) is None and _takes_tensors(script, each, takes_tensor)
        for each in names
    )


def _takes_tensors(script: Script, node: ast.expr, takes_tensor: TakesTensor) -> bool:
    """Whether an expression stands where only a tensor may."""
    parent = script.parents[node]
    if isinstance(parent, ast.Attribute):
        return parent.value is node and parent.attr in _OF_TENSORS
    if isinstance(parent, ast.Subscript) and isinstance(parent.slice, ast.Tuple):  # `y[:, 0]`
        return parent.value is node and any(isinstance(each, ast.Slice) for each in parent.slice.elts)
    if not isinstance(parent, ast.Call) or node not in parent.args:
        return False
    _, _, function = script.qualified(parent.func).rpartition(".")
    of_torch = script.qualified(parent.func).startswith("torch.") and function not in _OF_SEVERAL
    return of_torch or takes_tensor(parent, parent.args.index(node))


def _bound(script: Script, scope: ast.AST, name: ast.Name) -> list[tuple[tuple[int, int], ast.AST]]:
    """Where a name gets a value in a function, in order, and the statement or loop by which it does."""

    def places() -> Iterator[tuple[tuple[int, int], ast.AST]]:
        for each in names_and_parts(scope)[ast.Name]:
            if isinstance(each, ast.Name) and each.id == name.id and isinstance(each.ctx, ast.Store):
                statement = script.statement(each)
                after = statement if isinstance(statement, ast.Assign | ast.AugAssign | ast.AnnAssign) else each
                yield (after.end_lineno or 0, after.end_col_offset or 0), statement

    return sorted(places(), key=lambda place: place[0])


def _last(bound: list[tuple[tuple[int, int], ast.AST]], node: ast.AST) -> ast.AST | None:
    """What gave a name the value that it has at a node, read from above."""
    here = (node.lineno, node.col_offset)  # type: ignore[attr-defined]
    return next((statement for place, statement in reversed(bound) if place <= here), None)


def _assigned(bound: list[tuple[tuple[int, int], ast.AST]], name: ast.Name) -> ast.expr | None:
    """The value that was assigned to a name where it is read, alone or as one of several; None for others."""
    statement = _last(bound, name)
    if not isinstance(statement, ast.Assign) or len(statement.targets) > 1:
        return None
    target, value = statement.targets[0], statement.value
    if isinstance(target, ast.Name):
        return value
    if isinstance(target, ast.Tuple) and isinstance(value, ast.Tuple) and len(target.elts) == len(value.elts):
        named = (v for t, v in zip(target.elts, value.elts, strict=True) if isinstance(t, ast.Name) and t.id == name.id)
        return next(named, None)
    return None
