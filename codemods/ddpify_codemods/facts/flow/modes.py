"""Whether a network is known to be in training: its forward often gives back something else then."""

from __future__ import annotations

import ast

from .frames import Frame
from .values import Module, root_of

_CONDITIONS = ast.If | ast.IfExp | ast.While | ast.Try | ast.BoolOp | ast.Match | ast.ExceptHandler | ast.comprehension


def is_conditional(node: ast.AST, frame: Frame) -> bool:
    """Whether something may be left out by the function that it is in."""
    for each in frame.script.ancestors(node):
        if each is frame.node:
            return False
        if isinstance(each, _CONDITIONS):
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
