"""Whether each two samples of a batch meet."""

from __future__ import annotations

import ast

import pytest
from ddpify_codemods.facts.flow.meetings import lets_meet, meeting
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


def test_what_lets_its_operands_meet() -> None:
    assert lets_meet("sub", SAME)
    assert lets_meet("criterion", of(Module(ast.Pass(), "torch.nn.MSELoss")))
    assert not lets_meet("criterion", of(Module(ast.Pass(), "torch.nn.CrossEntropyLoss")))
    assert not lets_meet("criterion", SAME)
