"""Where ranks come unequally often: in a loop over a part of an evaluation each, or in what is called there."""

from __future__ import annotations

import ast
from collections.abc import Mapping

from ..script import Script
from .frames import FlowFacts
from .values import UNEVEN, Loader


def comes_unequally(found: FlowFacts, status: Mapping[Loader, str], script: Script, node: ast.AST) -> bool:
    """Whether ranks may come to a node of a file unequally often, so that none may wait there for another one."""
    waiting, seen = [(node, script)], set[ast.AST]()
    while waiting:
        at, there = waiting.pop()
        around = [at, *there.ancestors(at)]
        if any(status.get(loader) in UNEVEN for each in around for loader in found.loops.get(each, ())):
            return True
        for function in {there.scope(at)} - seen:
            seen.add(function)
            waiting += found.called_with.get(function, ())
    return False
