"""Whether each two samples of a batch meet."""

from __future__ import annotations

import ast
from dataclasses import replace

import pytest
from ddpify_codemods.facts.flow.meetings import lets_meet, may_meet_otherwise, meeting
from ddpify_codemods.facts.flow.values import BROADCAST, COUPLES, SAME, Module, Value, of

from tests.codemods.checks import node_of, script_of


@pytest.mark.parametrize(
    ("code", "counts", "expected"),
    [
        ("a - b", (1, 2), BROADCAST),
        ("a[:, None] - c", (2, 1), COUPLES),  # whoever adds a dimension means it
        ("a[:, None] - a", (2, 1), COUPLES),
        ("a - c", (1, None), ""),
        ("b - c", (2, 2), ""),
    ],
)
def test_meeting(code: str, counts: tuple[int | None, ...], expected: str) -> None:
    script = script_of(code)
    node = node_of(script, code)
    assert isinstance(node, ast.BinOp)
    values = [Value("rows", dimensions=each) for each in counts]
    assert meeting(script, [node.left, node.right], values) == expected


@pytest.mark.parametrize(
    ("one", "at_least", "expected"), [(1, 2, BROADCAST), (1, 1, ""), (1, 0, ""), (2, 2, ""), (None, 2, "")]
)
def test_tensors_of_which_one_has_several_dimensions(one: int | None, at_least: int, expected: str) -> None:
    script = script_of("a - b")
    node = node_of(script, "a - b")
    assert isinstance(node, ast.BinOp)
    values = [Value("rows", dimensions=one), Value("rows", at_least=at_least)]
    assert meeting(script, [node.left, node.right], values) == expected


def test_what_lets_its_operands_meet() -> None:
    assert lets_meet("sub", SAME)
    assert lets_meet("criterion", of(Module(ast.Pass(), "torch.nn.MSELoss")))
    assert not lets_meet("criterion", of(Module(ast.Pass(), "torch.nn.CrossEntropyLoss")))
    assert not lets_meet("criterion", SAME)


@pytest.mark.parametrize(
    ("code", "counts", "expected"),
    [
        ("f(a, b)", (4, None), True),
        ("f(a, b)", (None, None), True),
        ("f(a, b)", (4, 4), False),
        ("f(a.unsqueeze(1), b)", (None, None), False),  # whoever adds a dimension means it
    ],
)
def test_a_loss_of_tensors_of_which_one_may_have_a_dimension_more(
    code: str, counts: tuple[int | None, ...], expected: bool
) -> None:
    script = script_of(code)
    node = node_of(script, code)
    assert isinstance(node, ast.Call)
    values = [Value("rows", dimensions=each, widened=at == 0) for at, each in enumerate(counts)]
    assert may_meet_otherwise(script, node.args, values) is expected
    assert not may_meet_otherwise(script, node.args, [replace(each, widened=True) for each in values])
