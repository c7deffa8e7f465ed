"""What functions that train are given for a loader: also that of an evaluation, `run(test_loader, train=False)`,
a list, or nothing, `run(None)`, which have no sampler to tell the epoch to."""

from __future__ import annotations

import ast

from ..bindings import arguments
from .frames import Pass
from .program import Program
from .signatures import argument


def may_be_other(program: Program, way: Pass) -> bool:
    """Whether a call of the function that has a loop over epochs is not seen to give it a loader of training, by the
    name that the loader has there."""
    followed, name = program.followed, way.loader_there
    function = way.there.scope(way.epochs) if way.epochs is not None else None
    if not isinstance(function, ast.FunctionDef) or name not in arguments(function):
        return False
    for call, _ in followed.found.called_with.get(function, ()):
        given = argument(function, name, call)
        loaders = {loader for loader, _ in followed.found.sites.get(given, ())} if given is not None else set()
        if not loaders or any(followed.status.get(each) != "training" for each in loaders):
            return True
    return False
