"""Where ranks come unequally often: in a loop over a part of an evaluation each, or in what is called there."""

from __future__ import annotations

import ast
from collections.abc import Iterator, Mapping, Sequence

from ..meters import meters
from ..script import Script
from .frames import FlowFacts, Problem
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


def waits_apart(scripts: Sequence[Script], found: FlowFacts) -> Iterator[Problem]:
    """Where a number is brought together for one loop, and ranks come to the same place unequally often in another:
    in a method of a meter that a training and an evaluation update. It may ask for nothing in the latter, of whose
    numbers nothing is known."""
    places: dict[ast.AST, Script] = {each.at: each.script for each in found.after}
    places |= {node: each.script for node, reductions in found.reductions.items() for each in reductions}
    apart = {node: by for node, there in places.items() if (by := found.come_to_apart.get(_run_as_one(there, node)))}
    deferred = {node for meter in meters(scripts, found) for node in meter.reductions} if apart else set()
    for node in (each for each in apart if each not in deferred):
        reason = f"`{ast.unparse(node)}` is read here, where the ranks are at different places"
        yield Problem(places[node], node, reason, frozenset(apart[node]))


def _run_as_one(script: Script, node: ast.AST) -> ast.AST:
    """The statement that something is in, or what a lambda around it computes."""
    around = (node, *script.ancestors(node))
    computed = (each for each in around if isinstance(each, ast.stmt) or isinstance(script.parents[each], ast.Lambda))
    return next(computed)
