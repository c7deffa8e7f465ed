"""Generators that run over a loader again and again, for next(): `def cycle(loader): while True: …`."""

from __future__ import annotations

import ast
from dataclasses import dataclass
from functools import lru_cache

from ..script import KEPT, Script


@dataclass(frozen=True)
class Endless:
    """What such a generator is: its parameter that is a loader, the loop without end, and what gives batches in it."""

    loader: str
    loop: ast.While
    gives: ast.stmt


@lru_cache(maxsize=KEPT)
def endless(script: Script, function: ast.AST) -> Endless | None:
    """Such a generator, which gives batches as they are; None for others."""
    if not isinstance(function, ast.FunctionDef) or function.decorator_list:
        return None
    body = function.body
    if isinstance(body[0], ast.Expr) and isinstance(body[0].value, ast.Constant):
        body = body[1:]
    loop = body[0] if len(body) == 1 else None
    if not isinstance(loop, ast.While) or not _is_true(loop.test) or loop.orelse or len(loop.body) != 1:
        return None
    name = _given_on(loop.body[0])
    parameters = {each.arg for each in (*function.args.posonlyargs, *function.args.args)}
    return Endless(name, loop, loop.body[0]) if name in parameters else None


def _is_true(node: ast.expr) -> bool:
    return isinstance(node, ast.Constant) and bool(node.value)


def _given_on(node: ast.stmt) -> str:
    """The name of a loader whose batches a statement gives: `for batch in loader: yield batch`."""
    if isinstance(node, ast.Expr) and isinstance(node.value, ast.YieldFrom):
        over = node.value.value
        return over.id if isinstance(over, ast.Name) else ""
    if not isinstance(node, ast.For) or node.orelse or len(node.body) != 1 or not isinstance(node.iter, ast.Name):
        return ""
    inner = node.body[0]
    gives = inner.value.value if isinstance(inner, ast.Expr) and isinstance(inner.value, ast.Yield) else None
    given = gives.id if isinstance(gives, ast.Name) else ""
    return node.iter.id if given == ast.unparse(node.target) and given != node.iter.id else ""
