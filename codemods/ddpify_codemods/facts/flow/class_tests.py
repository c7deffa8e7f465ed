"""Whether something is a list, a dict or a tensor, where a script asks: `isinstance(outputs, list)`."""

from __future__ import annotations

import ast
from collections.abc import Mapping
from dataclasses import replace

from .values import LOCAL_ROWS, Items, Value

_OF_PYTHON = frozenset({"list", "tuple", "dict"})
Names = Mapping[str, Value]


def is_of_class(call: ast.Call, value: Value) -> bool | None:
    """What `isinstance` gives back; None where it is not known.

    Args: the call; what it asks for the class of.
    """
    is_tensor = value.kind in LOCAL_ROWS and (value.dimensions is not None or value.at_least > 0)
    is_alone = not value.things and not value.host and not value.array and value.is_none is False
    return False if _asked(call) and ((is_tensor and is_alone) or (value.unsized and not value.things)) else None


def known_ways(test: ast.expr, names: Names) -> tuple[Names, Names]:
    """What is known where a test holds, and where it does not, of what may be a list or a tensor.

    Args: the test, `isinstance(outputs, list)`; the names of the function.
    """
    if isinstance(test, ast.UnaryOp) and isinstance(test.op, ast.Not):
        holds, fails = known_ways(test.operand, names)
        return fails, holds
    asked = _asked(test)
    name = test.args[0] if asked and isinstance(test, ast.Call) else None
    value = names.get(name.id) if isinstance(name, ast.Name) else None
    if value is None or not value.things or not all(isinstance(e, Items) and e.shape in asked for e in value.things):
        return {}, {}
    assert isinstance(name, ast.Name)
    items = replace(value, kind="same", reason="", dimensions=None, at_least=0)
    return {name.id: items}, {name.id: replace(value, things=frozenset())}


def _asked(test: ast.expr) -> set[str]:
    """The classes of Python that a test asks for; empty where it asks for others, too."""
    if not isinstance(test, ast.Call) or ast.unparse(test.func) != "isinstance" or len(test.args) != 2:
        return set()
    asked = test.args[1]
    names = {ast.unparse(each) for each in (asked.elts if isinstance(asked, ast.Tuple) else [asked])}
    return names if names <= _OF_PYTHON else set()
