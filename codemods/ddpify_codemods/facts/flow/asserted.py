"""What is asserted of a batch, and holds for it if it holds for each rank's part: `assert x.max() < 10`. A rank that
raises ends the run, as one process would have."""

from __future__ import annotations

import ast
import builtins

from .frames import Frame, ancestors
from .handlers import ENDS
from .values import Class

_UPPER = (ast.Lt, ast.LtE)
_LOWER = (ast.Gt, ast.GtE)
_TURNED: dict[type[ast.cmpop], type[ast.cmpop]] = {ast.Lt: ast.Gt, ast.LtE: ast.GtE, ast.Gt: ast.Lt, ast.GtE: ast.LtE}
_LEAVE = (ast.Return, ast.Break, ast.Continue)
_OF_LOOPS = (StopIteration, StopAsyncIteration, GeneratorExit)


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


def may_be_caught(frame: Frame, raised: ast.AST) -> bool:
    """Whether what a statement raises in a frame may be caught by the program, and the rank go on."""
    error = _raised(frame, raised)
    place: Frame | None = frame
    while place is not None:
        around = ancestors(place.script, place.statement, place.node) if place.statement is not None else ()
        if any(_catches(each, error, place) for each in around):
            return True
        place = place.caller
    return False


def _catches(node: ast.stmt, error: type[BaseException] | None, frame: Frame) -> bool:
    """Whether a `try` may catch an exception, or pass over it: `finally: continue`."""
    if not isinstance(node, ast.Try | ast.TryStar):
        return False
    if any(isinstance(part, _LEAVE) for each in node.finalbody for part in ast.walk(each)):
        return True
    if error is None or isinstance(node, ast.TryStar):
        return bool(node.handlers)
    types = [each for handler in node.handlers for each in _types(handler)]
    caught = [_built_in(each, frame) if each is not None else None for each in types]
    return any(each is None or issubclass(error, each) for each in caught)


def _types(handler: ast.ExceptHandler) -> list[ast.expr | None]:
    return [*handler.type.elts] if isinstance(handler.type, ast.Tuple) else [handler.type]


def _raised(frame: Frame, raised: ast.AST) -> type[BaseException] | None:
    """The exception of Python that a statement raises, or that the class of its exception is derived from; None where
    that is not seen."""
    if isinstance(raised, ast.Raise):
        called = raised.exc.func if isinstance(raised.exc, ast.Call) else raised.exc
        return _built_in(called, frame) if called is not None else None
    if isinstance(raised, ast.Assert):
        return AssertionError
    return SystemExit if exits(frame, raised) else TypeError  # a call that gives what is not taken


def _built_in(name: ast.expr, frame: Frame, depth: int = 4) -> type[BaseException] | None:
    """The exception of Python that a name stands for, or that a class of the file is derived from."""
    if not isinstance(name, ast.Name):
        return None
    owner = frame.owner(name.id)
    if owner is not None:
        things = [*owner.names[name.id].things]
        cls = things[0] if len(things) == 1 and depth else None
        if not isinstance(cls, Class) or cls.script is not frame.script or len(cls.node.bases) != 1:
            return None
        return _built_in(cls.node.bases[0], frame, depth - 1)
    found = getattr(builtins, name.id, None) if frame.script.qualified(name) == name.id else None
    return found if isinstance(found, type) and issubclass(found, BaseException) else None


def exits(frame: Frame, node: ast.AST) -> bool:
    """Whether a statement is a call that ends the run: `sys.exit(1)`."""
    called = node.value.func if isinstance(node, ast.Expr) and isinstance(node.value, ast.Call) else None
    own = isinstance(called, ast.Name) and frame.owner(called.id) is not None and called.id not in frame.script.imported
    return called is not None and not own and frame.script.qualified(called) in ENDS


def ends_the_run(frame: Frame, raised: ast.AST) -> bool:
    """Whether what a statement raises in a frame surely ends the run: nothing catches it, no loop takes it for its end,
    and no context manager but those of torch may pass over it."""
    error = _raised(frame, raised)
    if isinstance(raised, ast.Raise) and raised.exc is not None and (error is None or issubclass(error, _OF_LOOPS)):
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
    return not may_be_caught(frame, raised)
