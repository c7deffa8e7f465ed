"""Modules that are imported by a name, and what is taken of them."""

from __future__ import annotations

import ast

import pytest
from ddpify_codemods.facts.imported_by_name import attributes_of, defines, imports_by_name, pattern


def calls(source: str) -> list[ast.Call]:
    return [node for node in ast.walk(ast.parse(source)) if isinstance(node, ast.Call) and imports_by_name(node)]


@pytest.mark.parametrize(
    ("name", "said"),
    [
        ('"models.net"', "models.net"),
        ('"models." + name', "models.*"),
        ('f"models.{name}"', "models.*"),
        ('"models.%s" % name', "models.*"),
        ('"models.{}".format(name)', "models.*"),
        ('".".join(["models", name])', "models.*"),
        ("name", "*"),
    ],
)
def test_as_far_as_the_source_says_it(name: str, said: str) -> None:
    (call,) = calls(f"importlib.import_module({name})")
    assert pattern(call.args[0]) == said


@pytest.mark.parametrize(
    ("source", "taken"),
    [
        ("def f(name):\n    net = import_module(name)\n    net.Net()\n    net.loss\n\n\nnet.other\n", {"Net", "loss"}),
        ("__import__(name).Net()", {"Net"}),
        ("use(__import__(name))", set()),
    ],
)
def test_what_is_taken(source: str, taken: set[str]) -> None:
    tree = ast.parse(source)
    call = next(node for node in ast.walk(tree) if isinstance(node, ast.Call) and imports_by_name(node))
    assert attributes_of(tree, call) == taken


def test_what_a_file_has() -> None:
    tree = ast.parse("from a import Net as N\nclass A: ...\ndef f(): ...\nx = 1\n")
    assert defines(tree, frozenset({"N", "A", "f", "x"}))
    assert not defines(tree, frozenset({"Net"}))
    assert defines(ast.parse("from a import *"), frozenset({"Net"}))
