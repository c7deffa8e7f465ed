"""Conditions of a forward that hold by the defaults of its arguments, where a call gives none: `if lin < 1:` of
`def forward(self, x, lin=0)`, called by `net(x)`."""

from __future__ import annotations

import ast
import operator
from collections.abc import Callable

from .frames import Frame

_LEAVES = ast.Return | ast.Raise | ast.Break | ast.Continue | ast.Yield | ast.YieldFrom
_ORDERS: dict[type[ast.cmpop], Callable[[float, float], bool]] = {
    ast.Lt: operator.lt,
    ast.LtE: operator.le,
    ast.Gt: operator.gt,
    ast.GtE: operator.ge,
    ast.Eq: operator.eq,
    ast.NotEq: operator.ne,
}


def holds_by_default(node: ast.If, frame: Frame) -> bool:
    """Whether a call of a forward surely comes to the body of an `if`, and goes by nothing.

    A condition that surely fails is another thing: what it goes by may be called elsewhere.
    """
    inside = [part for each in node.body for part in ast.walk(each)]
    return not node.orelse and not any(isinstance(each, _LEAVES) for each in inside) and _holds(node.test, frame)


def _holds(test: ast.expr, frame: Frame) -> bool:
    if isinstance(test, ast.BoolOp):
        return (all if isinstance(test.op, ast.And) else any)(_holds(each, frame) for each in test.values)
    if not isinstance(test, ast.Compare) or len(test.ops) != 1 or type(test.ops[0]) not in _ORDERS:
        return False
    left, right = _number(test.left, frame), _number(test.comparators[0], frame)
    return left is not None and right is not None and _ORDERS[type(test.ops[0])](left, right)


def _number(node: ast.expr, frame: Frame) -> float | None:
    """The number that an expression is: one that is written out, or the default of an argument that is not given."""
    if isinstance(node, ast.UnaryOp) and isinstance(node.op, ast.USub):
        number = _number(node.operand, frame)
        return None if number is None else -number
    if isinstance(node, ast.Name):
        default = _default(node.id, frame)
        known = frame.names[node.id].constant if default is not None and node.id in frame.names else None
        number = _number(default, frame) if default is not None and not isinstance(default, ast.Name) else None
        return number if type(known) in (int, float) and known == number else None
    written = node.value if isinstance(node, ast.Constant) else None
    return written if isinstance(written, int | float) and not isinstance(written, bool) else None


def _default(name: str, frame: Frame) -> ast.expr | None:
    """The default of an argument of a forward, which nothing gives another value, in the call or in the function."""
    function, call = frame.node, frame.call
    if not isinstance(function, ast.FunctionDef) or function.name != "forward" or not isinstance(call, ast.Call):
        return None
    if (function, name) in frame.script.stores or any(isinstance(each, ast.Starred) for each in call.args):
        return None
    if any(word.arg in (name, None) for word in call.keywords) or function.decorator_list:
        return None
    places = [each.arg for each in (*function.args.posonlyargs, *function.args.args)]
    defaults = dict(zip(reversed(places), reversed(function.args.defaults), strict=False))
    named = zip((each.arg for each in function.args.kwonlyargs), function.args.kw_defaults, strict=True)
    defaults |= {each: default for each, default in named if default is not None}
    given = name in places and places.index(name) <= len(call.args)  # behind `self`
    return None if given else defaults.get(name)
