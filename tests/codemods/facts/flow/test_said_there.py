"""What a function says, in the words of the place where a loader is made."""

from __future__ import annotations

import ast
from dataclasses import replace
from pathlib import Path

import pytest
from ddpify_codemods.facts.flow.said_there import Place, binder_of, constant_of, said_at
from ddpify_codemods.facts.flow.values import Function

from tests.codemods.checks import script_of


@pytest.mark.parametrize(
    ("source", "said"),
    [
        ("P = 1\ndef c(b): return P\nmake(c)\n", "P"),
        ("P = 1\ndef c(b):\n    P = 2\n    return P\nmake(c)\n", None),
        ("P = 1\ndef c(b): return P\ndef f(P):\n    make(c)\n", None),
        ("P = 1\ndef c(b): return P\ndef f():\n    from names import P\n    make(c)\n", None),
        ("def c(b):\n    from names import P\n    return P\nmake(c)\n", None),
        ("def f(P):\n    def c(b): return P\n    return c\nmake(f(1))\n", None),
        ("def c(b): return b.pad\nmake(c)\n", None),
    ],
)
def test_names(source: str, said: str | None) -> None:
    script = script_of(source)
    function = next(node for node in script.find(ast.FunctionDef) if node.name == "c")
    value = next(node.value for node in ast.walk(function) if isinstance(node, ast.Return))
    call = next(node for node in script.find(ast.Call) if ast.unparse(node.func) == "make")
    assert value is not None
    found = said_at(Place(script, call, [script]), value, Function(function, script), {"b": None})
    assert (ast.unparse(found) if found is not None else None) == said


def test_whose_variable_a_name_is() -> None:
    script = script_of("def f(x):\n    y = 1\n    [v for v in x]\n    z\n")
    node = next(each for each in script.find(ast.Name) if each.id == "z")
    assert [binder_of(script, node, name) is script.tree for name in "xyzv"] == [False, False, True, True]


@pytest.mark.parametrize(
    ("source", "other", "found"),
    [
        ("P = -1\n", "", "-1"),
        ("P = 'x'\n", "P = 2\n", "'x'"),
        ("from names import Q as P\n", "Q = 5\n", "5"),
        ("P = 1\n", "import script\nscript.P = 2\n", None),
        ("P = 1\n", "import script\nsetattr(script, 'P', 2)\n", None),
        ("P = 1\ndef f():\n    global P\n    P = 2\n", "", None),
        ("P = 1\nP = 2\n", "", None),
        ("P = 1\nP += 1\n", "", None),
        ("if x:\n    P = 1\n", "", None),
        ("P = read()\n", "", None),
        ("P, Q = 1, 2\n", "", None),
        ("P = 1\nfrom names import *\n", "P = 2\n", None),
        ("def f():\n    from names import P\n", "P = 2\n", None),
        ("P = 1\nfrom names import P\n", "P = 2\n", None),
        ("from names import P\n", "P = read()\n", None),
        ("from elsewhere import P\n", "P = 1\n", None),
    ],
)
def test_constants(source: str, other: str, found: str | None) -> None:
    script, names = script_of(source), replace(script_of(other), path=Path("names.py"))
    value = constant_of([script, names], script, "P")
    assert (ast.unparse(value) if value is not None else None) == found
