"""Whether a network is known to be in training: its forward often gives back something else then."""

from __future__ import annotations

import ast

from .frames import Frame
from .values import Function, Module, Value, functions_in, root_of

_CONDITIONS = ast.If | ast.IfExp | ast.While | ast.Try | ast.BoolOp | ast.Match | ast.ExceptHandler | ast.comprehension


def is_conditional(node: ast.AST, frame: Frame) -> bool:
    """Whether something may be left out by the function that it is in."""
    for each in frame.script.ancestors(node):
        if each is frame.node:
            return False
        if isinstance(each, _CONDITIONS):
            return True
        if isinstance(each, ast.ListComp | ast.GeneratorExp) and any(part.ifs for part in each.generators):
            return True
    return False


def trains(module: Module, frame: Frame) -> bool:
    """Whether a whole network was set to training by a function that is still running, and to nothing else since. Its
    parts may have been set to evaluation by themselves."""
    place: Frame | None = frame
    while place is not None and module.trains_in is not None and root_of(module) is module:
        if place is module.trains_in:
            return True
        place = place.caller
    return False


def sets_modes(value: Value) -> bool:
    """Whether a function that gets each part of a network, by `model.apply(…)`, may set all of them to evaluation. One
    that asks what a part is, `if isinstance(part, nn.BatchNorm2d):`, sets some of them."""
    return any(_sets_mode(each, function) for function in functions_in(value) for each in ast.walk(function.node))


def sets_reductions(value: Value) -> bool:
    """Whether a function that gets each part of a network may give losses among them another reduction."""
    return any(_sets_reduction(node) for each in functions_in(value) for node in ast.walk(each.node))


def _sets_reduction(node: ast.AST) -> bool:
    if isinstance(node, ast.Call) and ast.unparse(node.func).rpartition(".")[2] in ("setattr", "__setattr__"):
        return any(isinstance(each, ast.Constant) and each.value == "reduction" for each in node.args)
    if isinstance(node, ast.Subscript | ast.Attribute) and isinstance(node.ctx, ast.Store):
        return "reduction" in (getattr(node, "attr", ""), getattr(getattr(node, "slice", None), "value", ""))
    return False


def _sets_mode(node: ast.AST, function: Function) -> bool:
    calls = isinstance(node, ast.Call) and isinstance(node.func, ast.Attribute) and node.func.attr in ("eval", "train")
    writes = isinstance(node, ast.Attribute) and node.attr == "training" and not isinstance(node.ctx, ast.Load)
    around = iter(function.script.ancestors(node))
    inside = iter(lambda: next(around, function.node), function.node)
    return (calls or writes) and not any(isinstance(each, _CONDITIONS) for each in inside)
