"""Which variables a loop still reads when its body begins."""

from __future__ import annotations

import ast

import pytest
from ddpify_codemods.facts.resume.liveness import free_names, live_after, live_in, loaded, stored


def loop_of(source: str) -> tuple[ast.Module, ast.For]:
    tree = ast.parse(source)
    return tree, next(node for node in ast.walk(tree) if isinstance(node, ast.For))


@pytest.mark.parametrize(
    ("source", "names"),
    [
        ("best = 0\nfor e in es:\n    best = max(best, f(e))", {"best"}),
        ("for e in es:\n    x = f(e)\n    print(x)", set()),
        ("x = 1\nfor e in es:\n    pass\nprint(x)", {"x"}),
        ("x = 1\nfor e in es:\n    x = 2\nprint(x)", set()),
    ],
)
def test_what_is_read_before_it_is_assigned(source: str, names: set[str]) -> None:
    scope, loop = loop_of(source)
    assert live_in(scope, loop, runs_once=True) & {"best", "x"} == names


def test_what_is_read_after_the_loop() -> None:
    scope, loop = loop_of("x = y = 1\nfor e in es:\n    y = 2\nprint(x)")
    assert live_after(scope, loop, True) & {"x", "y"} == {"x"}


def test_names_of_statements_and_functions() -> None:
    tree = ast.parse("a, b = c, d\ndef f(p):\n    q = p + r\n    return q")
    assert {"a", "b"} <= set(stored(*tree.body)) and "q" not in stored(*tree.body)
    assert {"c", "d", "r"} <= set(loaded(*tree.body))
    assert set(free_names(tree.body[1])) & {"p", "q", "r"} == {"r"}
