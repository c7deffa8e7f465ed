"""What `isinstance(outputs, list)` says of outputs."""

from __future__ import annotations

import ast

import pytest
from ddpify_codemods.facts.flow.class_tests import is_of_class, known_ways
from ddpify_codemods.facts.flow.values import SAME, Items, Value, of

TENSOR = Value("rows", dimensions=2)
LIST = of(Items("list", {0: TENSOR}))
EITHER = Value("batch", things=LIST.things)


def parsed(text: str) -> ast.expr:
    return ast.parse(text, mode="eval").body


@pytest.mark.parametrize(
    ("test", "value", "known"),
    [
        ("isinstance(x, list)", TENSOR, False),
        ("isinstance(x, (list, tuple))", TENSOR, False),
        ("isinstance(x, list)", Value("rows"), None),
        ("isinstance(x, (list, torch.Tensor))", TENSOR, None),
        ("isinstance(x, list)", EITHER, None),
        ("isinstance(x, list)", SAME, None),
    ],
)
def test_a_tensor_is_no_list(test: str, value: Value, known: bool | None) -> None:
    call = parsed(test)
    assert isinstance(call, ast.Call)
    assert is_of_class(call, value) is known


def test_each_way_knows_its_class() -> None:
    holds, fails = known_ways(parsed("isinstance(x, (list, tuple))"), {"x": EITHER})
    assert holds["x"] == LIST and fails["x"] == Value("batch")
    assert known_ways(parsed("not isinstance(x, list)"), {"x": EITHER}) == ({"x": Value("batch")}, {"x": LIST})


@pytest.mark.parametrize("test", ["isinstance(x, dict)", "isinstance(y, list)", "isinstance(x, Other)", "x"])
def test_nothing_is_known_of_others(test: str) -> None:
    assert known_ways(parsed(test), {"x": EITHER}) == ({}, {})
