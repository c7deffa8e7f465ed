"""Whether the script may catch what a call raises: then it goes on, and all ranks have to go on the same way."""

from __future__ import annotations

import ast
import linecache
import threading
import types
from collections.abc import Iterator
from functools import lru_cache

from .called_back import is_library

# What an object of rank 0 does not raise; `finally` and what is caught to end the run need no agreement.
_OTHER_CAUSES = frozenset({"KeyboardInterrupt", "SystemExit", "GeneratorExit", "ImportError", "ModuleNotFoundError"})


def may_be_caught(frame: types.FrameType | None) -> bool:
    """Whether the line of the script that a frame is at, or that called it, is in a `try` or under a `suppress` of its
    function, which goes on then.

    It is the same on every rank: frames of libraries, which may be rank 0's alone, do not count. What other threads
    than the first one do has a time of its own on each rank, so that none may wait there.
    """
    if threading.current_thread() is not threading.main_thread():
        return False
    while frame is not None and is_library(frame.f_code.co_filename, frame.f_globals.get("__name__", "")):
        frame = frame.f_back
    if frame is None:
        return False
    line, code = frame.f_lineno or 0, frame.f_code
    around = (first for first, last in _caught_lines(code.co_filename) if first <= line <= last)
    return any(first >= code.co_firstlineno for first in around)


@lru_cache
def _caught_lines(path: str) -> tuple[tuple[int, int], ...]:
    """The first and last lines of what is tried in a file; nothing of what has no source."""
    try:
        tree = ast.parse("".join(linecache.getlines(path)))
    except SyntaxError:
        return ()
    return tuple((body[0].lineno, body[-1].end_lineno or 0) for body in map(_tried, ast.walk(tree)) if body)


def _tried(node: ast.AST) -> list[ast.stmt]:
    """The statements whose exceptions a node catches."""
    if isinstance(node, (ast.With, ast.AsyncWith)):
        return node.body if any(_suppresses(item.context_expr) for item in node.items) else []
    handlers: list[ast.ExceptHandler] = getattr(node, "handlers", [])  # of `try`, also with `except*`
    going_on = (each for each in handlers if not isinstance(each.body[-1], ast.Raise) or _leaves(each))
    return node.body if any(set(_names(each.type)) - _OTHER_CAUSES for each in going_on) else []  # type: ignore[attr-defined]


def _leaves(handler: ast.ExceptHandler) -> bool:
    """Whether a handler may go on although it ends with `raise`: `if tries < 3: continue`."""
    return any(isinstance(each, (ast.Continue, ast.Break, ast.Return)) for each in ast.walk(handler))


def _names(kind: ast.expr | None) -> Iterator[str]:
    """The exceptions that a handler names; "" for any."""
    for each in kind.elts if isinstance(kind, ast.Tuple) else (kind,):
        yield "" if each is None else ast.unparse(each)


def _suppresses(context: ast.expr) -> bool:
    return isinstance(context, ast.Call) and ast.unparse(context.func).rpartition(".")[2] == "suppress"
