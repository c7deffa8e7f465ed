"""Evaluations whose samples each rank draws for itself, or goes through in an order of its own: where all ranks go
through them as a whole, their numbers are others on each."""

from __future__ import annotations

import ast
from functools import lru_cache

from ..drawing_samplers import order_may_be_drawn
from ..script import KEPT, Script
from .draws import draws_from
from .values import Instance, Loader, Value

_AT_TIMES = ast.If | ast.IfExp | ast.BoolOp | ast.While | ast.Try


def draws_apart(loader: Loader, dataset: Value | None) -> bool:
    """Whether ranks whose generators are not at the same place get other samples, or in another order. A data set that
    draws at times (`if self.train:`), or by what it is given (`self.transform(image)`), is not known to.

    dataset: what the loader is made of.
    """
    if order_may_be_drawn(loader.script, loader.call):
        return True
    things = dataset.things if dataset is not None else frozenset()
    own = [each.cls for each in things if isinstance(each, Instance)]
    return bool(own) and len(own) == len(things) and all(_draws(each.script, each.node) for each in own)


@lru_cache(maxsize=KEPT)
def _draws(script: Script, cls: ast.ClassDef, name: str = "__getitem__", depth: int = 3) -> bool:
    """Whether a method of a class draws numbers each time, itself or by another one."""
    method = next((part for part in cls.body if isinstance(part, ast.FunctionDef) and part.name == name), None)
    for call in (node for node in ast.walk(method) if isinstance(node, ast.Call)) if method is not None else ():
        if any(isinstance(each, _AT_TIMES) for each in _within(script, call, method)):
            continue
        called = ast.unparse(call.func)
        own = called.removeprefix("self.") if called.startswith("self.") else ""
        if draws_from(script, call) or (depth and own and _draws(script, cls, own, depth - 1)):
            return True
    return False


def _within(script: Script, node: ast.AST, method: ast.AST | None) -> list[ast.AST]:
    """What a part of a method stands in."""
    around: list[ast.AST] = []
    for each in script.ancestors(node):
        if each is method:
            break
        around.append(each)
    return around
