"""Lists with a number for each sample that are made of other such lists: `[1 if p > 0.5 else 0 for p in probs]`.

Of all ranks they are brought together as those that they are made of: entries are numbers that a float32 holds as they
are, which is what tensors of a list of floats are made of.
"""

from __future__ import annotations

import ast
from collections.abc import Iterator

from ..script import Script

_TESTS = frozenset({"abs", "bool", "float", "int", "round"})
_COMPARES = (ast.Eq, ast.NotEq, ast.Lt, ast.LtE, ast.Gt, ast.GtE)


def lists_run_over(script: Script, node: ast.ListComp) -> list[ast.expr]:
    """What a comprehension runs over that makes one number for each turn: one list, or several by `zip`; [] for
    others."""
    part = node.generators[0]
    if len(node.generators) > 1 or part.ifs or part.is_async:
        return []
    zipped = isinstance(part.iter, ast.Call) and script.qualified(part.iter.func) == "zip"
    if not zipped:
        return [part.iter] if isinstance(part.target, ast.Name) else []
    assert isinstance(part.iter, ast.Call)
    targets = part.target.elts if isinstance(part.target, ast.Tuple) else []
    pairs = len(targets) == len(part.iter.args) and not part.iter.keywords
    plain = all(isinstance(each, ast.Name) for each in targets)
    return part.iter.args if pairs and plain and not any(isinstance(a, ast.Starred) for a in part.iter.args) else []


def taken(target: ast.expr) -> set[str]:
    """The names that a turn of a comprehension takes."""
    return {each.id for each in ast.walk(target) if isinstance(each, ast.Name)}


def is_number(script: Script, node: ast.expr, names: set[str]) -> bool:
    """Whether an entry is a number of a sample as it is, a whole number, or one of two of one type: the tensors that
    ranks make of their lists have to be of one."""
    return bool(_type(script, node, names))


def _type(script: Script, node: ast.expr, names: set[str]) -> str:
    """The type of an entry, or the sample that it is; "" for others."""
    if isinstance(node, ast.IfExp):
        one, other = (_type(script, each, names) for each in (node.body, node.orelse))
        return one if one == other and _is_computed(script, node.test, names) else ""
    if isinstance(node, ast.UnaryOp) and isinstance(node.op, ast.USub) and isinstance(node.operand, ast.Constant):
        return _type(script, node.operand, names)
    if isinstance(node, ast.Constant):
        exact = isinstance(node.value, int | float) and float(node.value).is_integer() and abs(node.value) < 2**24
        return type(node.value).__name__ if exact else ""
    if isinstance(node, ast.Call) and (name := script.qualified(node.func)) in ("int", "bool", "round"):
        computed = len(node.args) == 1 and not node.keywords and _is_computed(script, node.args[0], names)
        return name.replace("round", "int") if computed else ""
    if isinstance(node, ast.Compare):
        return "bool" if _is_computed(script, node, names) else ""
    return ast.unparse(node) if _is_sample(script, node, names) else ""


def others_in(node: ast.expr, names: set[str]) -> Iterator[ast.Name]:
    """What goes into an entry besides samples: `threshold`, of `args.threshold`, too."""
    calls = {part.func for part in ast.walk(node) if isinstance(part, ast.Call)}
    yield from (
        part for part in ast.walk(node) if isinstance(part, ast.Name) and part.id not in names and part not in calls
    )


def _is_sample(script: Script, node: ast.expr, names: set[str]) -> bool:
    """`p`, `p[0]`, `p.item()`, `float(p)`."""
    if isinstance(node, ast.Name):
        return node.id in names
    if isinstance(node, ast.Subscript):
        return isinstance(node.slice, ast.Constant) and _is_sample(script, node.value, names)
    if not isinstance(node, ast.Call) or node.keywords:
        return False
    if isinstance(node.func, ast.Attribute):
        return node.func.attr == "item" and not node.args and _is_sample(script, node.func.value, names)
    known = script.qualified(node.func) == "float" and len(node.args) == 1
    return known and _is_sample(script, node.args[0], names)


def _is_computed(script: Script, node: ast.expr, names: set[str]) -> bool:
    """Whether a number or a decision is computed of a sample and of what does not change."""
    if _is_sample(script, node, names):
        return True
    if isinstance(node, ast.Constant):
        return isinstance(node.value, int | float)
    if isinstance(node, ast.Name | ast.Attribute):
        root: ast.expr = node
        while isinstance(root, ast.Attribute):
            root = root.value
        return isinstance(root, ast.Name) and root.id not in names
    if isinstance(node, ast.Call):
        known = script.qualified(node.func) in _TESTS and len(node.args) == 1 and not node.keywords
        return known and _is_computed(script, node.args[0], names)
    parts: list[ast.expr] = []
    if isinstance(node, ast.Compare) and all(isinstance(each, _COMPARES) for each in node.ops):
        parts = [node.left, *node.comparators]
    elif isinstance(node, ast.BinOp):
        parts = [node.left, node.right]
    elif isinstance(node, ast.UnaryOp):
        parts = [node.operand]
    elif isinstance(node, ast.BoolOp):
        parts = node.values
    return bool(parts) and all(_is_computed(script, each, names) for each in parts)
