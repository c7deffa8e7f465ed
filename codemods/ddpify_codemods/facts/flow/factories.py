"""Models that a function makes and gives back: each place that calls it has another model."""

from __future__ import annotations

import ast
from functools import lru_cache

from ..tree import KEPT, walk
from .frames import Frame
from .values import Module

Calls = tuple[ast.AST | None, ...]


def maker_of(node: ast.Call, frame: Frame, before: dict[ast.AST, Calls]) -> ast.AST:
    """The call that a model is known by: the one that makes it, or, where functions give back what that makes and
    another model has come of it before, the call of these: of `teacher = resnet(50)` and `student = resnet(18)`,
    `resnet(18)`. Parts of a model are known by what makes them.

    Args: the call of a class; where it is; how the program came to each such call when it was first followed, which is
    noted here.
    """
    calls = () if any(isinstance(each, Module) for each in frame.makers) else _given_back_by(node, frame)
    if not calls or before.setdefault(node, calls)[-1:] == calls[-1:]:  # by other functions, perhaps
        return node
    return calls[-1] or node


def _given_back_by(node: ast.AST, frame: Frame) -> Calls:
    """The calls of the functions that give back what a call makes, the innermost first."""
    calls: list[ast.AST | None] = []
    given: ast.AST | None = node
    while given is not None and frame.caller is not None and _gives_back(frame.node, given):
        given, frame = frame.call, frame.caller
        calls.append(given)
    return tuple(calls)


@lru_cache(maxsize=KEPT)
def _gives_back(function: ast.AST, made: ast.AST) -> bool:
    """Whether a function returns what a call in it makes: `model = Net(); …; return model.to(device)`."""
    inside = [*walk(function)]
    names = {
        target.id
        for each in inside
        if isinstance(each, ast.Assign | ast.AnnAssign) and each.value is not None and _begins_with(each.value, made)
        for target in (each.targets if isinstance(each, ast.Assign) else [each.target])
        if isinstance(target, ast.Name)
    }
    returned = (each.value for each in inside if isinstance(each, ast.Return) and each.value is not None)
    return any(
        _begins_with(each, made) or (isinstance(first := _first(each), ast.Name) and first.id in names)
        for each in returned
    )


def _begins_with(value: ast.expr, made: ast.AST) -> bool:
    """Whether a value is what a call makes, or what methods of that give back: `Net().to(device)`."""
    while value is not made and isinstance(value, ast.Call) and isinstance(value.func, ast.Attribute):
        value = value.func.value
    return value is made


def _first(value: ast.expr) -> ast.expr:
    """What methods are called of, one behind the other: `model` of `model.to(device).eval()`."""
    while isinstance(value, ast.Call) and isinstance(value.func, ast.Attribute):
        value = value.func.value
    return value
