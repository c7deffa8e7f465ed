from __future__ import annotations

import libcst as cst
import pytest
from ddpify_codemods.arguments import with_keyword, with_name, without_keyword

ONE, THREE = cst.Integer("1"), cst.Integer("3")


def call(code: str) -> cst.Call:
    parsed = cst.parse_expression(code)
    assert isinstance(parsed, cst.Call)
    return parsed


def code(node: cst.CSTNode) -> str:
    return cst.Module([]).code_for_node(node)


@pytest.mark.parametrize(
    ("before", "after"),
    [
        ("f(a)", "f(a, x=3)"),
        ("f(a,)", "f(a,x=3,)"),
        ("f( a )", "f( a, x=3 )"),
        ("f(a, b=1)", "f(a, b=1, x=3)"),
        ("f(a, *b, **c)", "f(a, *b, x=3, **c)"),
        ("f(\n    a,\n)", "f(\n    a,\n    x=3,\n)"),
        ("f(\n    a,\n    b=1,\n)", "f(\n    a,\n    b=1,\n    x=3,\n)"),
        ("f(\n    a,\n    b=1\n)", "f(\n    a,\n    b=1,\n    x=3\n)"),
        ("f(a,\n  b=1)", "f(a,\n  b=1,\n  x=3)"),
        ("f(\n    a,  # why\n    b=1,  # that\n)", "f(\n    a,  # why\n    b=1,  # that\n    x=3,\n)"),
        ("f(\n    a,\n    b=1  # that\n)", "f(\n    a,\n    b=1,  # that\n    x=3\n)"),
        ("f(\n    a,  # why\n    **c,\n)", "f(\n    a,  # why\n    x=3,\n    **c,\n)"),
    ],
)
def test_behind_the_others_and_out_again(before: str, after: str) -> None:
    changed = with_keyword(call(before), "", "x", THREE)
    assert code(changed) == after
    assert code(without_keyword(call(after), "x")) == before


def test_in_the_place_of_a_positional_one() -> None:
    assert code(with_keyword(call("f(a, 4, True, z=2)"), "2", "x", THREE)) == "f(a, 4, x=3, z=2)"


def test_in_the_place_of_another_one() -> None:
    assert code(with_keyword(call("f(a, y = 1,  # why\n z=2)"), "y", "x", THREE)) == "f(a, x = 3,  # why\n z=2)"


@pytest.mark.parametrize(
    ("before", "after"),
    [("f(1, 2)", "f(n := 1, 2)"), ("f(2, x=1)", "f(2, x=(n := 1))"), ("f(\n  1,\n)", "f(\n  n := 1,\n)")],
)
def test_an_argument_gets_a_name(before: str, after: str) -> None:
    found = call(before)
    value = next(arg.value for arg in found.args if code(arg.value) == "1")
    assert code(with_name(found, value, "n")) == after
