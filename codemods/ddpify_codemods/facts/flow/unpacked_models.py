"""Models that a function takes out of a list that it is given: `encoder, decoder = models`."""

from __future__ import annotations

import ast

from ..script import Script
from .scopes import FUNCTIONS, binder_of, parameters_of
from .signatures import argument


def unpacked_from(script: Script, function: ast.AST, name: str) -> tuple[str, ast.Tuple | ast.List, int] | None:
    """The parameter that a local name of a function is taken out of, which it is given for nothing else; with the
    names on the left, and the place among them."""
    stores = script.stores.get((function, name), [])
    if len(stores) != 1 or not isinstance(function, FUNCTIONS):
        return None
    targets = script.parents[stores[0]]
    statement = script.parents[targets]
    if not (isinstance(targets, ast.Tuple | ast.List) and isinstance(statement, ast.Assign)):
        return None
    value = statement.value
    if not isinstance(value, ast.Name) or value.id not in parameters_of(function):
        return None
    if any(isinstance(each, ast.Starred) for each in targets.elts) or len(statement.targets) > 1:
        return None
    named = (each for each in ast.walk(function) if isinstance(each, ast.Name) and each.id == value.id)
    if any(each is not value and binder_of(script, each) is function for each in named):
        return None
    return value.id, targets, targets.elts.index(stores[0])


def given_for(script: Script, function: ast.AST, name: str, call: ast.Call) -> ast.expr | None:
    """What a call gives for a parameter, or for a name that the function takes out of one.

    Args: the file of the function, the function, the name, the call.
    """
    found = unpacked_from(script, function, name)
    if found is None:
        return argument(function, name, call)
    parameter, targets, place = found
    given = argument(function, parameter, call)
    if not isinstance(given, ast.Tuple | ast.List) or len(given.elts) != len(targets.elts):
        return None
    return None if any(isinstance(each, ast.Starred) for each in given.elts) else given.elts[place]
