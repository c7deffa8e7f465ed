"""What collate functions pad with, in their own words, and where their loaders are made."""

from __future__ import annotations

import ast

import pytest
from ddpify_codemods.facts.flow.collate import collated, paddings
from ddpify_codemods.facts.flow.padding import Padded, code_for
from ddpify_codemods.facts.flow.said_there import Place
from ddpify_codemods.facts.flow.values import Function, Value

from tests.codemods.checks import script_of

from .followed import COLLATE_HEAD


def padded(source: str) -> dict[str | int | None, Padded]:
    script = script_of(COLLATE_HEAD + source)
    function = next(node for node in script.nodes if isinstance(node, ast.FunctionDef) and node.name == "c")
    part = collated(Function(function, script))
    return paddings(part) if part is not None else {}


@pytest.mark.parametrize(
    ("source", "expected"),
    [
        ("def c(b):\n    return pad_sequence(b)\n", {None: Padded(0, "0", 1)}),
        ("def c(b):\n    return pad_sequence(b).t()\n", {None: Padded(1, "0", 0)}),
        ("def c(b):\n    return pad_sequence(b, True, V['<pad>']).long()\n", {None: Padded(1, "V['<pad>']")}),
        (
            "def c(b):\n    p = -1\n    x = pad_sequence([e[0] for e in b], True, p)\n"
            "    return x, x == p, [e[1] for e in b]\n",
            {0: Padded(1, "-1"), 1: Padded(1, "True")},
        ),
        (
            "def pad(xs, value=2):\n    return pad_sequence(xs, True, value)\n"
            'def c(b):\n    return {"x": pad([e[0] for e in b]), "y": pad([e[1] for e in b], 3)}\n',
            {"x": Padded(1, "2"), "y": Padded(1, "3")},
        ),
        ("def c(b):\n    x = pad_sequence(b)\n    return x * x\n", {}),
        ("def c(b):\n    x = pad_sequence(b)\n    return x > 3\n", {}),
        ("def c(b):\n    for p in b:\n        pass\n    return pad_sequence(b, True, p)\n", {}),
    ],
)
def test_in_its_own_words(source: str, expected: dict[str | int | None, Padded]) -> None:
    assert padded(source) == expected


@pytest.mark.parametrize(
    ("source", "value", "code"),
    [
        ("def c(b, p=4): pass\nDataLoader(d, collate_fn=c)", "p", "4"),
        ("def c(b, p): pass\nP = 3\nDataLoader(d, collate_fn=partial(c, p=P))", "p", "P"),
        ("def c(b, p): pass\nDataLoader(d, collate_fn=partial(c, p=draw()))", "p", ""),
        ("P = 2\ndef c(b): pass\ndef f(x):\n    DataLoader(x, collate_fn=c)", "P", "P"),
        ("def f():\n    q = 1\n    def c(b): pass\n    return c\nDataLoader(d, collate_fn=f())", "q", ""),
        ("q = 2\ndef f():\n    q = 1\n    def c(b): pass\n    return c\nDataLoader(d, collate_fn=f())", "q", ""),
        ("q = 2\ndef c(b): pass\ndef f(q):\n    DataLoader(d, collate_fn=c)", "q", ""),
        ("def f(q):\n    def c(b): pass\n    DataLoader(d, collate_fn=c)", "q", "q"),
        ("v = load()\ndef c(b): pass\nDataLoader(d, collate_fn=c)", "v.stoi['<pad>']", "v.stoi['<pad>']"),
    ],
)
def test_where_the_loader_is_made(source: str, value: str, code: str) -> None:
    script = script_of(f"from functools import partial\n{source}\n")
    function = next(node for node in script.nodes if isinstance(node, ast.FunctionDef) and node.name == "c")
    call = next(node for node in script.find(ast.Call) if ast.unparse(node.func) == "DataLoader")
    place = Place(script, call, [script])
    assert code_for(value, Function(function, script), call.keywords[0].value, place, None) == code


def test_the_attributes_of_an_object() -> None:
    source = (
        "class C:\n    def __init__(self, pad=0):\n        self.pad = pad\n    def c(self, b): pass\n"
        "DataLoader(d, collate_fn=C(7).c)\nDataLoader(d, collate_fn=each.c)\neach = C()\n"
    )
    script = script_of(source)
    function = next(node for node in script.nodes if isinstance(node, ast.FunctionDef) and node.name == "c")
    calls = [node for node in script.find(ast.Call) if ast.unparse(node.func) == "DataLoader"]
    owned = Function(function, script, owner=Value())
    initial = Function(next(node for node in script.find(ast.FunctionDef) if node.name == "__init__"), script)
    places = [(call.keywords[0].value, Place(script, call, [script])) for call in calls]
    assert [code_for("self.pad", owned, given, place, initial) for given, place in places] == ["7", "each.pad"]
    assert code_for("self.pad", owned, *places[0], None) == ""  # by a function of which nothing is known
