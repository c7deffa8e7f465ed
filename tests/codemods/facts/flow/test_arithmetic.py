"""What arithmetic makes of values that depend on a rank's samples."""

from __future__ import annotations

import ast

import pytest
from ddpify_codemods.facts.flow.arithmetic import combined
from ddpify_codemods.facts.flow.values import Value


@pytest.mark.parametrize(
    ("operator", "left", "right", "kind"),
    [
        (ast.Add(), "sum", "sum", "sum"),
        (ast.Add(), "mean", "mean", "mean"),
        (ast.Mult(), "mean", "size", "sum"),
        (ast.Div(), "sum", "size", "mean"),
        (ast.Add(), "sum", "mean", "unknown"),
        (ast.Add(), "rows", "same", "rows"),
        (ast.Sub(), "rows", "mean", "unknown"),
        (ast.Add(), "rows", "rows_second", "unknown"),
        (ast.Add(), "same", "same", "same"),
    ],
)
def test_what_two_values_make(operator: ast.operator, left: str, right: str, kind: str) -> None:
    found = combined(operator, Value(left), Value(right))  # type: ignore[arg-type]
    assert found.kind == kind
    assert bool(found.reason) is (kind == "unknown")


def test_a_product_of_matrices_may_couple_samples() -> None:
    assert combined(ast.MatMult(), Value("rows"), Value("same")).kind == "rows"
    assert combined(ast.MatMult(), Value("rows"), Value("rows_last")).kind == "unknown"
