"""What functions that train are given for a loader: also that of an evaluation, `run(test_loader, train=False)`,
a list, or nothing, `run(None)`, which have no sampler to tell the epoch to."""

from __future__ import annotations

import ast

from ..bindings import arguments
from .frames import Pass
from .program import Program
from .signatures import argument


def may_be_other(program: Program, way: Pass) -> bool:
    """Whether a call may give the function that has a loop over epochs something else than a loader of training, by the
    name that the loader has there. What an argument is that is no variable, the loop over its batches tells."""
    followed, name = program.followed, way.loader_there
    found, is_seen = followed.found, True
    others = way.loop in found.over_others
    others |= any(followed.status.get(each) != "training" for each in found.loops.get(way.loop, ()))
    parts = name.split(".")
    if len(parts) > 1 and all(map(str.isidentifier, parts)) and way.loader_here == name:  # `self.loader` of several
        return others
    function = way.there.scope(way.epochs) if way.epochs is not None else None
    if not isinstance(function, ast.FunctionDef) or name not in arguments(function):
        return False
    for call, _ in found.called_with.get(function, ()):
        given = argument(function, name, call)
        loaders = {loader for loader, _ in found.sites.get(given, ())} if given is not None else set()
        is_seen &= bool(loaders)
        if any(followed.status.get(each) != "training" for each in loaders):
            return True
    return not is_seen and others
