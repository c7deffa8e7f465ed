"""Whether something is a list, a dict or a tensor, where a script asks: `isinstance(outputs, list)`."""

from __future__ import annotations

import ast
from collections.abc import Mapping
from dataclasses import replace

from ..script import Script
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


def is_asked_before(script: Script, call: ast.Call) -> bool:
    """Whether what a call is given is a tuple or a list by the test in front of it: `if isinstance(data, tuple): data =
    list(data)`, `list(data) if isinstance(data, tuple) else data`."""
    around: ast.AST = script.parents[call]
    if isinstance(around, ast.Assign):
        statement, around = around, script.parents[around]
        first = isinstance(around, ast.If) and around.body[0] is statement
    else:
        first = isinstance(around, ast.IfExp) and around.body is call
    test = around.test if first and isinstance(around, ast.If | ast.IfExp) else None
    asked = _asked(test) if test is not None and isinstance(call.args[0], ast.Name) else set()
    assert not asked or isinstance(test, ast.Call)
    return bool(asked) and asked <= {"list", "tuple"} and ast.unparse(test.args[0]) == ast.unparse(call.args[0])  # type: ignore[union-attr]


def _asked(test: ast.expr) -> set[str]:
    """The classes of Python that a test asks for; empty where it asks for others, too."""
    if not isinstance(test, ast.Call) or ast.unparse(test.func) != "isinstance" or len(test.args) != 2:
        return set()
    asked = test.args[1]
    names = {ast.unparse(each) for each in (asked.elts if isinstance(asked, ast.Tuple) else [asked])}
    return names if names <= _OF_PYTHON else set()
