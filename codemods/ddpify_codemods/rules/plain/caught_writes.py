"""Where rank 0 goes on behind a `try` if a file that it alone writes cannot be written, and the others wait for it."""

from __future__ import annotations

import ast
from collections.abc import Iterator

from ...facts.called_modules import last_name
from ...facts.flow.handlers import stops
from ...facts.flow.raised import may_be_among
from ...facts.script import Script
from .words import program_of

_FAILS = ("OSError", "FileNotFoundError", "PermissionError", "ValueError", "RuntimeError")
_LOOPS = (ast.For, ast.While)


def caught_by(script: Script, statement: ast.stmt) -> tuple[Script, ast.Try] | None:
    """The `try` around a call of a function behind which rank 0 goes on if a statement in there cannot write its file,
    and the others wait behind that statement. One around the statement itself may try again, as often as they wait."""
    program = program_of(script)
    if isinstance(statement, ast.Try) and any(_takes(script, each) for each in statement.handlers):
        return None
    waiting: list[tuple[ast.AST, Script]] = [(statement, script)]
    seen = set[ast.AST]()
    while waiting:
        at, there = waiting.pop()
        tries = [each for each in _tries(there, at) if any(_takes(there, one) for one in each.handlers)]
        if tries and at is statement:
            continue
        goes_on = next((each for each in tries if _goes_on(there, each)), None)
        if goes_on is not None:
            return there, goes_on
        function = there.scope(at)
        if function not in seen:
            seen.add(function)
            waiting += program.followed.found.called_with.get(function, ())
    return None


def _tries(script: Script, node: ast.AST) -> Iterator[ast.Try]:
    """The `try` statements whose bodies a node stands in, in its function."""
    child = node
    for each in script.ancestors(node):
        if isinstance(each, ast.FunctionDef | ast.AsyncFunctionDef | ast.Lambda):
            return
        if isinstance(each, ast.Try) and child in each.body:
            yield each
        child = each


def _takes(script: Script, handler: ast.ExceptHandler) -> bool:
    """Whether a handler takes what a file raises that cannot be written, and does not end the run."""
    types = handler.type.elts if isinstance(handler.type, ast.Tuple) else [handler.type]
    names = ["BaseException" if each is None else ast.unparse(each) for each in types]
    return may_be_among(_FAILS, names) and not stops(script, handler)


def _goes_on(script: Script, around: ast.Try) -> bool:
    """Whether more comes behind a `try` than the end of the run: a loop, or a function of the program."""
    for each in (around, *script.ancestors(around)):
        if isinstance(each, _LOOPS):
            return True
        if not isinstance(each, ast.stmt) or isinstance(each, ast.FunctionDef | ast.AsyncFunctionDef):
            return False
        block = script.block(each)
        behind = [part for other in block[block.index(each) + 1 :] for part in ast.walk(other)]
        if any(isinstance(part, _LOOPS) or _is_own(script, part) for part in behind):
            return True
    return False


def _is_own(script: Script, node: ast.AST) -> bool:
    return isinstance(node, ast.Call) and last_name(node.func) in script.defined
