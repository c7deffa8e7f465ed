"""Generators that run over a loader again and again, for next(): `def cycle(loader): while True: …`."""

from __future__ import annotations

import ast
from dataclasses import dataclass
from functools import lru_cache

from ..script import KEPT, Script


@dataclass(frozen=True)
class Endless:
    """What such a generator is: its parameter that is a loader, the loop without end, what gives batches in it, and
    where what it gives of a batch lies in it: `(0,)` for `for x, y in loader: yield x`."""

    loader: str
    loop: ast.While
    gives: ast.stmt
    part: tuple[int, ...]


@lru_cache(maxsize=KEPT)
def endless(script: Script, function: ast.AST) -> Endless | None:
    """Such a generator, which gives batches as they are, or one part of each; None for others."""
    if not isinstance(function, ast.FunctionDef) or function.decorator_list:
        return None
    body = function.body
    if isinstance(body[0], ast.Expr) and isinstance(body[0].value, ast.Constant):
        body = body[1:]
    loop = body[0] if len(body) == 1 else None
    if not isinstance(loop, ast.While) or not _is_true(loop.test) or loop.orelse or len(loop.body) != 1:
        return None
    name, part = _given_on(loop.body[0])
    parameters = {each.arg for each in (*function.args.posonlyargs, *function.args.args)}
    return Endless(name, loop, loop.body[0], part) if name in parameters and part is not None else None


def _is_true(node: ast.expr) -> bool:
    return isinstance(node, ast.Constant) and bool(node.value)


def _given_on(node: ast.stmt) -> tuple[str, tuple[int, ...] | None]:
    """The name of a loader whose batches a statement gives, `for batch in loader: yield batch`, and what of each."""
    if isinstance(node, ast.Expr) and isinstance(node.value, ast.YieldFrom):
        over = node.value.value
        return (over.id, ()) if isinstance(over, ast.Name) else ("", None)
    if not isinstance(node, ast.For) or node.orelse or len(node.body) != 1:
        return "", None
    over, target = node.iter, node.target
    how = over.func.id if isinstance(over, ast.Call) and isinstance(over.func, ast.Name) and len(over.args) == 1 else ""
    if isinstance(over, ast.Call) and how in ("iter", "enumerate"):
        over = over.args[0]
    if how == "enumerate":
        target = target.elts[1] if isinstance(target, ast.Tuple) and len(target.elts) == 2 else node.iter
    inner = node.body[0]
    gives = inner.value.value if isinstance(inner, ast.Expr) and isinstance(inner.value, ast.Yield) else None
    if not isinstance(over, ast.Name) or gives is None or over.id in {ast.unparse(gives), ast.unparse(target)}:
        return "", None
    return over.id, _place_of(gives, target)


def _place_of(gives: ast.expr, target: ast.expr) -> tuple[int, ...] | None:
    """Where something lies in what a loop's variables take; None for what is made of it, or taken by a number, which
    may be a sample."""
    if ast.unparse(gives) == ast.unparse(target):
        return ()
    for place, each in enumerate(target.elts if isinstance(target, ast.Tuple | ast.List) else ()):
        if not isinstance(each, ast.Starred) and (found := _place_of(gives, each)) is not None:
            return (place, *found)
    return None
