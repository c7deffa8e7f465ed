"""Loops over the loader of an evaluation get loaders of their own, where one cannot be divided and others can.

`images, labels = next(iter(test_loader))` looks at one batch; the accuracy on the test set is divided all the same.
"""

from __future__ import annotations

import ast
from collections.abc import Sequence

from ..script import Script
from .frames import FlowFacts, Site
from .values import UNEVEN, Loader


def separate(loader: Loader, found: FlowFacts, evaluated: dict[ast.expr, Script]) -> bool:
    """Let each loop over a loader take its samples by itself; whether there are several that do not yet."""
    if loader.source is not None:
        return False
    ways = [_alone(loader, found, sites) for each, sites in found.measured if each is loader]
    own = {site.node: site.script for site in ways if site is not None}
    trains = any((loader, True) in each for each in found.sites.values())
    if len(own) + trains + (None in ways) < 2 or own.keys() <= evaluated.keys():
        return False
    evaluated.update(own)
    return True


def _alone(loader: Loader, found: FlowFacts, sites: Sequence[Site]) -> Site | None:
    """The nearest expression by which nothing but a loader comes to a loop, which does not train."""
    known = (site for site in sites if site.node not in found.without_loaders)
    return next((site for site in known if found.sites.get(site.node) == {(loader, False)}), None)


def is_replaced(node: ast.expr, found: FlowFacts, status: dict[Loader, str]) -> bool:
    """Whether a loop takes other batches than the loader has that is written there."""
    for loader, _ in found.sites.get(node, ()):
        if loader.source is not None and status[loader.source] != "training":
            return status[loader.source] in UNEVEN and status[loader] == "whole"
    return True


def divided_by_none(found: FlowFacts, status: dict[Loader, str]) -> set[Loader]:
    """The loaders of which each loop takes all batches, by one of its own."""
    used = {each.source or each for over in found.loops.values() for each in over if status.get(each) in UNEVEN}
    return {each.source for each in status if each.source and status[each.source] in UNEVEN} - used
