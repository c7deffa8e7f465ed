"""What never runs in a program that asks torch.distributed for a process group, but never joins one."""

from __future__ import annotations

import ast
import operator
from collections.abc import Iterator, Sequence
from functools import lru_cache
from typing import Any

from .bindings import bindings
from .distribution import unused_code
from .script import KEPT, Script

_UNKNOWN = object()
_DEPTH = 6  # functions that ask functions that ask
_COMPARE = {ast.Eq: operator.eq, ast.NotEq: operator.ne, ast.Lt: operator.lt, ast.LtE: operator.le}
_COMPARE |= {ast.Gt: operator.gt, ast.GtE: operator.ge}
_ENDS = (ast.Return, ast.Raise, ast.Continue, ast.Break)


def asks_for_group(script: Script, call: ast.AST) -> bool:
    """Whether a node is `torch.distributed.is_initialized()`."""
    return isinstance(call, ast.Call) and script.qualified(call.func) == "torch.distributed.is_initialized"


@lru_cache(maxsize=KEPT)
def never_run(script: Script) -> frozenset[ast.AST]:
    """Every node that a program which joins no process group of its own never comes to."""
    if not script.only_asks_for_group:
        return unused_code(script)
    return unused_code(script) | {part for node in _dead_roots(script) for part in ast.walk(node)}


def _dead_roots(script: Script) -> Iterator[ast.AST]:
    for node in script.nodes:
        if isinstance(node, (ast.If, ast.IfExp)):
            truth = _value(script, node.test)
            if truth is not _UNKNOWN:
                lost = node.orelse if truth else node.body
                yield from lost if isinstance(lost, list) else [lost]
        elif isinstance(node, ast.BoolOp):
            decides = isinstance(node.op, ast.Or)
            values = [_value(script, value) for value in node.values]
            place = next(
                (n for n, value in enumerate(values) if value is not _UNKNOWN and bool(value) is decides), None
            )
            yield from node.values[place + 1 :] if place is not None else ()
        for block in (getattr(node, "body", None), getattr(node, "orelse", None)):
            if isinstance(block, list):
                yield from _after_the_end(script, block)


def _after_the_end(script: Script, block: Sequence[ast.stmt]) -> Sequence[ast.stmt]:
    for place, statement in enumerate(block):
        if isinstance(statement, ast.If):
            truth = _value(script, statement.test)
            taken = () if truth is _UNKNOWN else statement.body if truth else statement.orelse
            if taken and isinstance(taken[-1], _ENDS):
                return block[place + 1 :]
    return ()


def _value(script: Script, node: ast.expr, depth: int = _DEPTH) -> Any:
    """What an expression comes to without a process group, if that is known."""
    if not depth:
        return _UNKNOWN
    if isinstance(node, ast.Constant):
        return node.value
    if asks_for_group(script, node):
        return False
    if isinstance(node, ast.Call) and isinstance(node.func, ast.Name):
        named = [function for function in script.find(ast.FunctionDef) if function.name == node.func.id]
        return _result(script, named[0].body, depth - 1) if len(named) == 1 else _UNKNOWN
    if isinstance(node, ast.Name):
        found = bindings(script, script.scope(node)).get(node.id, [])
        return _value(script, found[0], depth - 1) if len(found) == 1 else _UNKNOWN
    if isinstance(node, ast.UnaryOp) and isinstance(node.op, ast.Not):
        inner = _value(script, node.operand, depth)
        return inner if inner is _UNKNOWN else not inner
    if isinstance(node, ast.IfExp):
        truth = _value(script, node.test, depth)
        return _UNKNOWN if truth is _UNKNOWN else _value(script, node.body if truth else node.orelse, depth)
    if isinstance(node, ast.BoolOp):
        return _joined(isinstance(node.op, ast.Or), [_value(script, value, depth) for value in node.values])
    if isinstance(node, ast.Compare) and len(node.ops) == 1 and type(node.ops[0]) in _COMPARE:
        sides = [_value(script, side, depth) for side in (node.left, node.comparators[0])]
        numbers = all(isinstance(side, int) for side in sides)
        return _COMPARE[type(node.ops[0])](*sides) if numbers else _UNKNOWN
    return _UNKNOWN


def _joined(decides: bool, values: Sequence[Any]) -> Any:
    if any(value is not _UNKNOWN and bool(value) is decides for value in values):
        return decides
    return _UNKNOWN if _UNKNOWN in values else not decides


def _result(script: Script, body: Sequence[ast.stmt], depth: int) -> Any:
    """What a function gives back, if that is one value whichever way it goes."""
    values = set(_returned(script, body, depth))
    return values.pop() if len(values) == 1 else _UNKNOWN


def _returned(script: Script, body: Sequence[ast.stmt], depth: int) -> Iterator[Any]:
    for statement in body:
        if isinstance(statement, ast.Return):
            yield None if statement.value is None else _value(script, statement.value, depth)
            return
        if isinstance(statement, ast.If):
            truth = _value(script, statement.test, depth)
            branches = (
                [statement.body, statement.orelse]
                if truth is _UNKNOWN
                else [statement.body if truth else statement.orelse]
            )
            for branch in branches:
                yield from (value for value in _returned(script, branch, depth) if value is not None)
            if len(branches) == 1 and branches[0] and isinstance(branches[0][-1], _ENDS):
                return
        elif any(isinstance(part, ast.Return) for part in ast.walk(statement)):
            yield _UNKNOWN
    yield None
