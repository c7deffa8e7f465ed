"""Which functions a call may call, and what it gives them."""

from __future__ import annotations

import ast

import pytest
from ddpify_codemods.facts.flow.signatures import argument, needs, takes

from tests.codemods.checks import node_of, script_of


@pytest.mark.parametrize(
    ("parameters", "given", "answer"),
    [
        ("", "", True),
        ("a", "", False),
        ("a=1", "", True),
        ("a, b=1", "2", True),
        ("a", "2, 3", False),
        ("*a", "2, 3", True),
        ("a", "b=1", False),
        ("a", "1, a=1", False),
        ("a, /", "a=1", False),
        ("a, /, **k", "1, a=1", True),
        ("**k", "b=1", True),
        ("*, b", "", False),
        ("*, b", "b=1", True),
        ("a, b", "*c", True),
        ("a, b", "**c", True),
    ],
)
def test_what_a_function_takes(parameters: str, given: str, answer: bool) -> None:
    function, call = (ast.parse(each, mode="eval").body for each in (f"lambda {parameters}: 0", f"f({given})"))
    assert isinstance(function, ast.Lambda) and isinstance(call, ast.Call)
    assert takes(function.args, call) is answer


def test_a_method_has_its_object() -> None:
    function, call = (ast.parse(each, mode="eval").body for each in ("lambda self, a: 0", "f(1)"))
    assert isinstance(function, ast.Lambda) and isinstance(call, ast.Call)
    assert takes(function.args, call, is_bound=True) and not takes(function.args, call)


def test_an_argument_by_name_or_place() -> None:
    script = script_of("def f(a, b): pass\nx = f(1, b=2)")
    function, call = next(script.find(ast.FunctionDef)), node_of(script, "f(1, b=2)")
    found = [argument(function, name, call) for name in ("a", "b", "c")]
    assert [each and ast.unparse(each) for each in found] == ["1", "2", None]


@pytest.mark.parametrize(
    ("parameters", "given", "number"),
    [
        ("a, b", "*c", 2),
        ("self, a, b", "*c", 3),
        ("a, b", "*c, b=1", 1),
        ("a, b=1", "*c", 0),
        ("*a", "*c", 0),
        ("a, b", "*c, **d", 0),
        ("a, *, b", "*c, b=1", 1),
    ],
)
def test_how_many_values_are_needed(parameters: str, given: str, number: int) -> None:
    script = script_of(f"def f({parameters}): ...\nf({given})\n")
    (function,), (call,) = script.find(ast.FunctionDef), script.find(ast.Call)
    assert needs(function, call, is_bound=False) == number
