"""What the losses of torch make of a batch: its mean, its sum, or a number for each element."""

from __future__ import annotations

import ast

import pytest
from ddpify_codemods.facts.flow.reductions import reduction_of


def constant(node: ast.expr) -> object:
    return node.value if isinstance(node, ast.Constant) else None


@pytest.mark.parametrize(
    ("call", "reduction"),
    [
        ("cross_entropy(x, y)", "mean"),
        ("cross_entropy(x, y, reduction='sum')", "sum"),
        ("cross_entropy(x, y, reduction=how)", "?"),
        ("mse_loss(x, y, False)", "sum"),
        ("mse_loss(x, y, reduce=False)", "none"),
        ("CrossEntropyLoss(w, False)", "sum"),
        ("CrossEntropyLoss(**options)", "?"),
        ("MSELoss(size_average=True)", "mean"),
    ],
)
def test_the_reduction_that_a_loss_is_asked_for(call: str, reduction: str) -> None:
    node = ast.parse(call, mode="eval").body
    assert isinstance(node, ast.Call) and isinstance(node.func, ast.Name)
    assert reduction_of(node.func.id, node, constant) == reduction
