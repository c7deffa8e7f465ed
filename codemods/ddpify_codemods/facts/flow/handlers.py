"""Exceptions around a training: whether a rank that meets one goes on without the others, and trains again."""

from __future__ import annotations

import ast
from collections.abc import Sequence, Set
from dataclasses import dataclass, field

from ..script import Script
from .raised import may_be_among, raises_unseen, writes_by_own

GOES_ON = "a rank that goes on after an exception leaves the others waiting in their backward pass"
ENDS = frozenset({"sys.exit", "exit", "quit", "os._exit", "os.abort"})
_MEMORY = frozenset({"torch.cuda.OutOfMemoryError", "torch.OutOfMemoryError", "MemoryError"})
_ANY = frozenset({"Exception", "RuntimeError"})


@dataclass(eq=False)
class Trying:
    """The body of a `try` that is being followed.

    loops: how many loops over batches are around it. in_batch: whether it trains on a batch of one of those. raises:
    the names of the exceptions that the program raises in it itself, "" for one of another name. reads: whether it
    reads files, or does without training at another time.
    """

    loops: int
    in_batch: bool = False
    raises: set[str] = field(default_factory=set)
    reads: bool = False


def stops(script: Script, handler: ast.ExceptHandler) -> bool:
    """Whether a handler ends the run, or is of an end that a person asks for."""
    asked = isinstance(handler.type, ast.Name) and handler.type.id == "KeyboardInterrupt"
    return asked or _end(script, handler.body, leaves=False)


def suppresses(script: Script, manager: ast.expr) -> bool:
    """Whether `with` goes on after exceptions: `contextlib.suppress(…)`; but for an end that a person asks for, or
    that batches come to."""
    if not isinstance(manager, ast.Call) or script.qualified(manager.func) != "contextlib.suppress":
        return False
    return any(ast.unparse(each) not in ("KeyboardInterrupt", "StopIteration") for each in manager.args)


def enters_suppressing(script: Script, node: ast.AST) -> bool:
    """Whether `with` goes on after exceptions by what its stack is given: `stack.enter_context(suppress(…))`."""
    calls = (each for each in ast.walk(node) if isinstance(each, ast.Call) and isinstance(each.func, ast.Attribute))
    return any(each.func.attr == "enter_context" and suppresses(script, part) for each in calls for part in each.args)  # type: ignore[attr-defined]


def goes_on(script: Script, function: ast.AST) -> bool:
    """Whether `with` goes on after exceptions by a function: an `__exit__` that gives back true, or a generator that
    takes them where it yields."""
    if getattr(function, "name", "") == "__exit__":
        given = [each.value for each in ast.walk(function) if isinstance(each, ast.Return) and each.value is not None]
        return not all(_is_false(each, _told(function)) for each in given)
    around = (each for each in ast.walk(function) if isinstance(each, ast.Try))
    yielding = (each for each in around if any(isinstance(part, ast.Yield) for part in ast.walk(each)))
    return any(not stops(script, handler) for each in yielding for handler in each.handlers)


def _told(function: ast.AST) -> set[str]:
    """What an `__exit__` is told of an exception: parameters that are None only where there is none."""
    given = [each.arg for each in function.args.args[1:]] if isinstance(function, ast.FunctionDef) else []
    names = (each for each in ast.walk(function) if isinstance(each, ast.Name))
    return {*given} - {each.id for each in names if isinstance(each.ctx, ast.Store)}


def _is_false(node: ast.expr, told: Set[str]) -> bool:
    """Whether what an `__exit__` gives back is false where there is an exception, or what another one does."""
    if isinstance(node, ast.BoolOp):
        parts = [_is_false(each, told) for each in node.values]
        return any(parts) if isinstance(node.op, ast.And) else all(parts)
    if isinstance(node, ast.UnaryOp) and isinstance(node.op, ast.Not):  # `not exc_type`
        return isinstance(node.operand, ast.Name) and node.operand.id in told
    if isinstance(node, ast.Compare):  # `exc_type is None`
        name = node.left.id if isinstance(node.left, ast.Name) else ""
        return name in told and ast.unparse(node) in (f"{name} is None", f"{name} == None")
    if isinstance(node, ast.Call):
        return isinstance(node.func, ast.Attribute) and node.func.attr == "__exit__"
    return isinstance(node, ast.Constant) and not node.value


def can_end(
    script: Script, handler: ast.ExceptHandler, around: ast.Try, body: Trying, scripts: Sequence[Script]
) -> bool:
    """Whether the exception of a handler can end the run in its stead, since nothing that the program means to do needs
    it: memory that is not enough; or any error that ends a training, of which none is the program's own."""
    if around.finalbody or not isinstance(around, ast.Try):
        return False  # the rank that raises does that first, and the others are not there
    if any(isinstance(each, ast.Yield | ast.YieldFrom) for each in ast.walk(around)):
        return False
    everything = tuple(scripts)
    if writes_by_own(everything, handler):
        return False  # it saves what there is
    if not body.in_batch and _ends_with_success(script, around):
        return False
    if is_of_memory(script, handler):
        return not may_be_among(body.raises, {script.qualified(each) for each in _types(handler)})
    return (
        _is_of(script, handler, _ANY | _MEMORY)
        and not (body.in_batch or body.raises or body.reads)
        and not raises_unseen(everything)
    )


def leaves_loop(script: Script, handler: ast.ExceptHandler) -> bool:
    """Whether a handler leaves the loop, or the function, in any case."""
    return _end(script, handler.body, leaves=True)


def _is_of(script: Script, handler: ast.ExceptHandler, names: frozenset[str]) -> bool:
    """Whether all that a handler takes has one of some names."""
    types = _types(handler)
    return bool(types) and all(script.qualified(each) in names - script.defined for each in types)


def _types(handler: ast.ExceptHandler) -> list[ast.expr]:
    if isinstance(handler.type, ast.Tuple):
        return handler.type.elts
    return [] if handler.type is None else [handler.type]


def is_of_memory(script: Script, handler: ast.ExceptHandler) -> bool:
    """Whether a handler takes that memory is not enough, and raises all else again."""
    if _is_of(script, handler, _MEMORY):
        return True
    for place, part in enumerate(handler.body):
        asks = [*ast.walk(part.test)] if isinstance(part, ast.If) else []
        if isinstance(part, ast.If) and _asks_for_memory(asks, handler.name):
            is_other = any(isinstance(each, ast.NotIn | ast.Not) for each in asks)
            if any(isinstance(each, ast.BoolOp) for each in asks):
                return False
            other = part.body if is_other else part.orelse or handler.body[place + 1 :]
            return _is_of(script, handler, _ANY | _MEMORY) and bool(other) and _end(script, other, leaves=False)
    return False


def _asks_for_memory(asks: list[ast.AST], error: str | None) -> bool:
    """Whether a test looks for "memory" in what an exception says."""
    words = (each.value for each in asks if isinstance(each, ast.Constant) and isinstance(each.value, str))
    named = any(isinstance(each, ast.Name) and each.id == error for each in asks)
    return named and any("memory" in each.lower() for each in words)


def _ends_with_success(script: Script, node: ast.Try) -> bool:
    """Whether a loop tries something until it goes well: smaller batches, until memory is enough."""
    gone_wrong = {each for handler in node.handlers for each in ast.walk(handler)}
    for parent in script.ancestors(node):
        if isinstance(parent, ast.FunctionDef | ast.AsyncFunctionDef):
            return any(isinstance(each, ast.Return) and each.value is not None for each in ast.walk(node))
        if isinstance(parent, ast.While):
            return True
        if isinstance(parent, ast.For | ast.AsyncFor):
            inner = (each for part in parent.body for each in ast.walk(part) if each not in gone_wrong)
            return any(isinstance(each, ast.Break | ast.Return) for each in inner)
    return False


def _end(script: Script, body: list[ast.stmt], leaves: bool) -> bool:
    """Whether each way through some statements ends the run; leaves: or the loop that they are in."""
    others = (ast.Continue,) if leaves else (ast.Continue, ast.Break, ast.Return)
    if any(isinstance(part, others) for each in body[:-1] for part in ast.walk(each)):
        return False
    last = body[-1]
    if isinstance(last, ast.If):
        return bool(last.orelse) and all(_end(script, each, leaves) for each in (last.body, last.orelse))
    if isinstance(last, ast.Expr) and isinstance(last.value, ast.Call):
        return script.qualified(last.value.func) in ENDS
    return isinstance(last, ast.Raise) or (leaves and isinstance(last, ast.Break | ast.Return))


def is_repeated(script: Script, node: ast.AST) -> bool:
    """Whether a loop runs over a statement, in the function that it is in."""
    for parent in script.ancestors(node):
        if isinstance(parent, ast.For | ast.AsyncFor | ast.While):
            return True
        if isinstance(parent, ast.FunctionDef | ast.AsyncFunctionDef):
            return False
    return False
