"""What is asserted of a batch, and holds for it if it holds for each rank's part: `assert x.max() < 10`. A rank that
raises ends the run, as one process would have."""

from __future__ import annotations

import ast

from .frames import Frame, ancestors

_UPPER = (ast.Lt, ast.LtE)
_LOWER = (ast.Gt, ast.GtE)
_TURNED: dict[type[ast.cmpop], type[ast.cmpop]] = {ast.Lt: ast.Gt, ast.LtE: ast.GtE, ast.Gt: ast.Lt, ast.GtE: ast.LtE}


def parts(test: ast.expr, negated: bool = False) -> list[ast.expr] | None:
    """The conditions of which each has to hold (not to hold, where negated), for all samples of a batch; None where
    that may be so for a batch and not for its parts."""
    if isinstance(test, ast.UnaryOp) and isinstance(test.op, ast.Not):
        return parts(test.operand, not negated)
    if isinstance(test, ast.BoolOp):
        each = [parts(value, negated) for value in test.values]
        if isinstance(test.op, ast.Or) is not negated or None in each:
            return None
        return [one for several in each for one in several or ()]
    if isinstance(test, ast.Compare) and len(test.ops) == 1:
        return [test] if _bounds(test, negated) else None
    return [test] if _name(test) == ("any" if negated else "all") else None


def _bounds(test: ast.Compare, negated: bool) -> bool:
    """Whether the largest number is said to be at most something, or the smallest one at least."""
    operator, (right,) = type(test.ops[0]), test.comparators
    for side, way in ((test.left, operator), (right, _TURNED.get(operator))):
        of = _name(side)
        if of in ("max", "amax") and way in (_LOWER if negated else _UPPER):
            return True
        if of in ("min", "amin") and way in (_UPPER if negated else _LOWER):
            return True
    return False


def _name(node: ast.expr) -> str:
    """The reduction over a whole tensor that an expression is: `x.max().item()`, `torch.all(x)`; "" for others."""
    while isinstance(node, ast.Call):
        function, inner = node.func, node.args[0] if len(node.args) == 1 else None
        name = function.attr if isinstance(function, ast.Attribute) else getattr(function, "id", "")
        if name in ("item", "cpu", "detach") and isinstance(function, ast.Attribute):
            node = function.value
        elif name in ("bool", "int", "float") and inner is not None and isinstance(function, ast.Name):
            node = inner
        else:
            method = isinstance(function, ast.Attribute) and not node.args
            of_torch = isinstance(function, ast.Attribute) and ast.unparse(function.value) in ("torch", "np", "numpy")
            whole = (method and not of_torch) or (of_torch and inner is not None)
            return name if whole and not node.keywords else ""
    return ""


def may_be_caught(frame: Frame) -> bool:
    """Whether what is raised in a frame may be caught by the program, and the rank go on."""
    place: Frame | None = frame
    while place is not None:
        around = ancestors(place.script, place.statement, place.node) if place.statement is not None else ()
        if any(isinstance(each, ast.Try | ast.TryStar) and each.handlers for each in around):
            return True
        place = place.caller
    return False


def ends_the_run(frame: Frame, raised: ast.stmt | None) -> bool:
    """Whether what is raised in a frame surely ends the run: nothing catches it, no loop takes it for its end, and no
    context manager but those of torch may pass over it."""
    called = raised.exc if isinstance(raised, ast.Raise) else None
    if called is not None and ast.unparse(called).startswith(("StopIteration", "GeneratorExit", "StopAsyncIteration")):
        return False
    place: Frame | None = frame
    while place is not None:
        around = ancestors(place.script, place.statement, place.node) if place.statement is not None else ()
        for each in (one for one in around if isinstance(one, ast.With | ast.AsyncWith)):
            calls = [item.context_expr for item in each.items]
            names = [place.script.qualified(one.func if isinstance(one, ast.Call) else one) for one in calls]
            if not all(name.startswith(("torch.", "tqdm.")) or name == "open" for name in names):
                return False
        place = place.caller
    return not may_be_caught(frame)
