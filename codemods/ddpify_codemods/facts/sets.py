"""Which values are sets whose order is another in every process: also those that a dictionary holds."""

from __future__ import annotations

import ast
from collections.abc import Iterator

from .script import Script

_DEPTH = 6  # of names that stand for names
_SETS = frozenset({"set", "frozenset"})
_METHODS = frozenset({"union", "intersection", "difference", "symmetric_difference", "copy"})


def is_set(script: Script, node: ast.expr, depth: int = _DEPTH) -> bool:
    """Whether a value is a set, other than one of whole numbers alone. Args: depth: of names that are looked up."""
    if _is_of_numbers(node):
        return False
    if isinstance(node, ast.Call):
        if isinstance(node.func, ast.Attribute) and node.func.attr in _METHODS:
            return is_set(script, node.func.value, depth)
        return isinstance(node.func, ast.Name) and node.func.id in _SETS
    if isinstance(node, ast.BinOp) and isinstance(node.op, ast.Sub | ast.BitAnd | ast.BitOr | ast.BitXor):
        return is_set(script, node.left, depth) or (_is_of_numbers(node.left) and is_set(script, node.right, depth))
    if isinstance(node, ast.Subscript):
        return _holds_sets(script, node.value, depth)
    if isinstance(node, ast.Name | ast.Attribute):
        if (looped := _looped(script, node)) is not None:
            return _is_value_of_sets(script, *looped, depth)
        made = _assigned(script, node) if depth else []
        return bool(made) and all(is_set(script, each, depth - 1) for each in made)
    return isinstance(node, ast.Set | ast.SetComp)


def _is_of_numbers(node: ast.expr) -> bool:
    """Whether a set is made of a range, or is what is left of such a one: its order is alike in every process."""
    if isinstance(node, ast.BinOp) and isinstance(node.op, ast.Sub | ast.BitAnd):
        return _is_of_numbers(node.left)
    if not isinstance(node, ast.Call) or len(node.args) != 1:
        return False
    if isinstance(node.func, ast.Attribute):
        return node.func.attr in ("difference", "intersection") and _is_of_numbers(node.func.value)
    made = node.args[0]
    is_range = isinstance(made, ast.Call) and isinstance(made.func, ast.Name) and made.func.id == "range"
    return isinstance(node.func, ast.Name) and node.func.id in _SETS and is_range


def _holds_sets(script: Script, node: ast.expr, depth: int) -> bool:
    """Whether a value is a dictionary of sets: `defaultdict(set)`, `{key: set(words) for …}`."""
    if isinstance(node, ast.Call):
        makes = [each.id for each in node.args[:1] if isinstance(each, ast.Name)]
        return script.qualified(node.func) == "collections.defaultdict" and makes == ["set"]
    if isinstance(node, ast.DictComp):
        return is_set(script, node.value, depth)
    if isinstance(node, ast.Dict):
        return bool(node.values) and all(is_set(script, each, depth) for each in node.values)
    made = _assigned(script, node) if depth and isinstance(node, ast.Name | ast.Attribute) else []
    return bool(made) and all(_holds_sets(script, each, depth - 1) for each in made)


def _looped(script: Script, node: ast.expr) -> tuple[str, ast.expr, ast.expr] | None:
    """Of a variable of a loop or comprehension around it: its name, all variables, and what that runs over."""
    for around in script.ancestors(node) if isinstance(node, ast.Name) else ():
        if isinstance(around, ast.FunctionDef | ast.AsyncFunctionDef | ast.ClassDef):
            break
        for loop in [around] if isinstance(around, ast.For) else getattr(around, "generators", ()):
            names = {each.id for each in ast.walk(loop.target) if isinstance(each, ast.Name)}
            assert isinstance(node, ast.Name)
            if node.id in names and node not in ast.walk(loop.iter):
                return node.id, loop.target, loop.iter
    return None


def _is_value_of_sets(script: Script, name: str, variables: ast.expr, values: ast.expr, depth: int) -> bool:
    """Whether a variable of a loop is one of `d.values()`, or the second of `d.items()`, of a dictionary of sets."""
    if not isinstance(values, ast.Call) or not isinstance(values.func, ast.Attribute):
        return False
    if values.func.attr == "items" and isinstance(variables, ast.Tuple) and len(variables.elts) == 2:
        variables = variables.elts[1]
    elif values.func.attr != "values":
        return False
    return ast.unparse(variables) == name and _holds_sets(script, values.func.value, depth)


def _assigned(script: Script, node: ast.expr) -> list[ast.expr]:
    """What a name or attribute stands for: what the line above assigns, if that is seen, or what any line does."""
    name = ast.unparse(node)
    statement = script.statement(node)
    while not isinstance(statement, ast.FunctionDef | ast.AsyncFunctionDef | ast.ClassDef):
        block = script.block(statement)
        for before in reversed(block[: block.index(statement)]):
            if stored := list(_values(before, name)):
                return stored
        above = script.parents[statement]
        if not isinstance(above, ast.stmt):
            break
        statement = above
    return [value for each in script.find(ast.Assign, ast.AnnAssign) for value in _values(each, name)]


def _values(statement: ast.stmt, name: str) -> Iterator[ast.expr]:
    """What a name is assigned in a statement, or in those inside it."""
    for each in ast.walk(statement):
        if isinstance(each, ast.Assign | ast.AnnAssign) and each.value is not None:
            targets = each.targets if isinstance(each, ast.Assign) else [each.target]
            if any(ast.unparse(target) == name for target in targets):
                yield each.value
