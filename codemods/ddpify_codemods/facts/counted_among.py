"""Whether a sum that an object keeps is 0 wherever a count that it keeps is: `self.hits / max(self.count, 1)`."""

from __future__ import annotations

import ast
from collections.abc import Iterable

from .script import Script

_JUMPS = ast.Return | ast.Raise | ast.Break | ast.Continue
_COMPARES = ast.Eq | ast.NotEq | ast.Lt | ast.LtE | ast.Gt | ast.GtE
_Change = ast.Assign | ast.AugAssign


def counted_among(scripts: Iterable[Script], script: Script, part: ast.expr, count: ast.expr) -> bool:
    """Whether what an attribute of `self` adds up is added beside what another one counts, and is 0 where that is.

    A count is one of rows, `y.size(0)`, and the sum one of something for each of them; or a count of what a mask takes,
    `mask.sum()`, and the sum one of what the mask leaves.

    Args: the program, and the file; part, count: where they are read.
    """
    scripts = [*scripts]
    parts, counts = _changes(scripts, script, part), _changes(scripts, script, count)
    if not parts or not counts:
        return False
    added = [each for each in counts if isinstance(each, ast.AugAssign)]
    for change in parts:
        beside = [each for each in added if _run_together(script, change, each)]
        if isinstance(change, ast.AugAssign) and not any(_is_of(script, change.value, each.value) for each in beside):
            return False
    whole = all(rows_counted(each.value) is not None or _mask(script, each.value) is not None for each in added)
    reset = [each for each in parts if isinstance(each, ast.Assign)]
    resets = (each for each in counts if isinstance(each, ast.Assign))
    return whole and all(any(_run_together(script, each, other) for other in reset) for each in resets)


def _changes(scripts: Iterable[Script], script: Script, node: ast.expr) -> list[_Change] | None:
    """The statements of a class that set an attribute of `self` to 0, or add to it; None where there are others."""
    around = _class(script, node)
    if not isinstance(node, ast.Attribute) or around is None or ast.unparse(node.value) != "self":
        return None
    if any(each.attr == "__dict__" for each in ast.walk(around) if isinstance(each, ast.Attribute)):
        return None
    found: list[_Change] = []
    for each in scripts:
        for target in each.find(ast.Attribute):
            if target.attr != node.attr or isinstance(target.ctx, ast.Load):
                continue
            change = each.parents[target]
            is_own = ast.unparse(target) == ast.unparse(node) and _class(each, target) is around
            if not is_own or not isinstance(change, _Change) or not _sets_or_adds(change):
                return None
            found.append(change)
        if any(_may_set(each, call, node.attr, around) for call in each.find(ast.Call)):
            return None
    return found


def _may_set(script: Script, call: ast.Call, attribute: str, around: ast.ClassDef) -> bool:
    """Whether a call sets attributes by their names, and may do so for one of a class."""
    if not isinstance(call.func, ast.Name) or call.func.id not in ("setattr", "vars") or not call.args:
        return False
    name = call.args[1] if len(call.args) > 1 else None
    if isinstance(name, ast.Constant) and name.value != attribute:
        return False
    return ast.unparse(call.args[0]) != "self" or _class(script, call) is around


def _class(script: Script, node: ast.AST) -> ast.ClassDef | None:
    return next((each for each in script.ancestors(node) if isinstance(each, ast.ClassDef)), None)


def _sets_or_adds(change: _Change) -> bool:
    if isinstance(change, ast.AugAssign):
        return isinstance(change.op, ast.Add)
    return isinstance(change.value, ast.Constant) and change.value.value == 0


def _run_together(script: Script, one: ast.stmt, other: ast.stmt) -> bool:
    """Whether two statements are in one block, with nothing between them that leaves it."""
    block = script.block(one)
    if other not in block:
        return False
    first, last = sorted((block.index(one), block.index(other)))
    return not any(isinstance(part, _JUMPS) for each in block[first:last] for part in ast.walk(each))


def _is_of(script: Script, part: ast.expr, count: ast.expr) -> bool:
    """Whether a sum is 0 where a count is: it is so many times something, or a sum over what is counted."""
    rows, mask, summed = rows_counted(count), _mask(script, count), _summed(part)
    if rows is not None and isinstance(part, ast.BinOp) and isinstance(part.op, ast.Mult):
        sides = [ast.dump(part.left), ast.dump(part.right)]
        return ast.dump(count) in sides and _is_never_changed(script, rows)
    if summed is None:
        return False
    if rows is not None:
        return _is_never_changed(script, rows) and _has_rows_of(script, summed, rows.id)
    made = _made(script, summed) if isinstance(summed, ast.Name) else summed
    masks = [made.left, made.right] if isinstance(made, ast.BinOp) and isinstance(made.op, ast.BitAnd) else []
    masks += [made.slice] if isinstance(made, ast.Subscript) else []
    return mask is not None and any(isinstance(each, ast.Name) and each.id == mask for each in masks)


def rows_counted(count: ast.expr) -> ast.Name | None:
    """The tensor whose rows are counted: `y.size(0)`, `y.shape[0]`, `len(y)`."""
    call = count if isinstance(count, ast.Call) else None
    if call is not None and len(call.args) == 1 and not call.keywords:
        if isinstance(call.func, ast.Name) and call.func.id == "len" and isinstance(call.args[0], ast.Name):
            return call.args[0]
        if isinstance(call.func, ast.Attribute) and call.func.attr == "size" and _is_zero(call.args[0]):
            return call.func.value if isinstance(call.func.value, ast.Name) else None
    shape = count.value if isinstance(count, ast.Subscript) and _is_zero(count.slice) else None
    if isinstance(shape, ast.Attribute) and shape.attr == "shape" and isinstance(shape.value, ast.Name):
        return shape.value
    return None


def _is_zero(node: ast.expr) -> bool:
    return isinstance(node, ast.Constant) and node.value == 0


def _has_rows_of(script: Script, node: ast.expr, name: str, depth: int = 6) -> bool:
    """Whether something is computed element by element with a tensor: of one without rows it has no elements."""
    if isinstance(node, ast.Name):
        made = _made(script, node) if depth and node.id != name else None
        return node.id == name or (made is not None and _has_rows_of(script, made, name, depth - 1))
    if isinstance(node, ast.Compare) and len(node.ops) == 1 and isinstance(node.ops[0], _COMPARES):
        return any(_has_rows_of(script, each, name, depth) for each in (node.left, node.comparators[0]))
    if isinstance(node, ast.BinOp) and isinstance(node.op, ast.BitAnd | ast.BitOr | ast.Add | ast.Sub | ast.Mult):
        return any(_has_rows_of(script, each, name, depth) for each in (node.left, node.right))
    if isinstance(node, ast.UnaryOp):
        return _has_rows_of(script, node.operand, name, depth)
    if isinstance(node, ast.Call) and isinstance(node.func, ast.Attribute):
        given = [*node.args, *(word.value for word in node.keywords)]
        within = [isinstance(each, ast.Constant) and each.value == 1 for each in given] == [True]
        if node.func.attr in ("float", "long", "int") and not given:
            return _has_rows_of(script, node.func.value, name, depth)
        if node.func.attr in ("eq", "ne") and len(given) == 1:
            return any(_has_rows_of(script, each, name, depth) for each in (node.func.value, given[0]))
        return node.func.attr in ("all", "any") and within and _has_rows_of(script, node.func.value, name, depth)
    return False


def _mask(script: Script, count: ast.expr) -> str | None:
    """The name of the mask, made by a comparison, that something counts: `mask.sum().item()`."""
    summed = _summed(count)
    made = _made(script, summed) if isinstance(summed, ast.Name) else None
    if not isinstance(summed, ast.Name) or not isinstance(made, ast.Compare) or not isinstance(made.ops[0], _COMPARES):
        return None
    return summed.id


def _summed(node: ast.expr) -> ast.expr | None:
    """What is summed: the tensor in `tensor.sum().item()`."""
    if not isinstance(node, ast.Call) or not isinstance(node.func, ast.Attribute) or node.args or node.keywords:
        return None
    if node.func.attr == "item":
        return _summed(node.func.value)
    return node.func.value if node.func.attr == "sum" else None


def _made(script: Script, name: ast.Name) -> ast.expr | None:
    """What a name of a function is made of, by one assignment; None where it is changed since."""
    stores = script.stores.get((script.scope(name), name.id), [])
    assign = script.parents[stores[0]] if len(stores) == 1 and _is_never_changed(script, name) else None
    alone = isinstance(assign, ast.Assign) and len(assign.targets) == 1 and assign.targets[0] in stores
    return assign.value if alone else None  # type: ignore[union-attr]


def _is_never_changed(script: Script, name: ast.Name) -> bool:
    """Whether a name has one value in its function: a parameter, or something that is assigned once."""
    scope = script.scope(name)
    if isinstance(scope, ast.Module):
        return False
    given = {each.arg for each in ast.walk(scope.args) if isinstance(each, ast.arg)}
    bound = len(script.stores.get((scope, name.id), [])) + (name.id in given)
    uses = (each for each in ast.walk(scope) if isinstance(each, ast.Name) and each.id == name.id)
    return bound == 1 and not any(_is_change(script, each) for each in uses)


def _is_change(script: Script, name: ast.Name) -> bool:
    """Whether a tensor is changed where its name stands: `mask[0] = False`, `mask.logical_not_()`."""
    parent = script.parents[name]
    if isinstance(parent, ast.Subscript):
        return not isinstance(parent.ctx, ast.Load)
    if isinstance(parent, ast.Attribute):
        return not isinstance(parent.ctx, ast.Load) or parent.attr.endswith("_")
    return isinstance(parent, ast.keyword) and parent.arg == "out"
