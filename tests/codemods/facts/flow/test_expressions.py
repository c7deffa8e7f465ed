"""Expressions are followed: indexing, comparing, choosing, building lists."""

from __future__ import annotations

import pytest

from tests.codemods.facts.flow.followed import of_evaluation


@pytest.mark.parametrize(
    "adds",
    [
        "total += (model(x).argmax(1) == y).sum().item()",
        "total += (model(x).max(1)[1] == y).float().sum().item()",
        "total += len(y) if True else 0",
        "total += F.cross_entropy(model(x), y, reduction='sum').item()",
    ],
)
def test_what_is_added_up_is_divided(adds: str) -> None:
    found = of_evaluation(adds)
    assert found.problems == () and "sharded" in found.status.values()


@pytest.mark.parametrize("adds", ["total = max(total, model(x).max().item())", "total += model(x).median().item()"])
def test_what_cannot_be_added_up_is_not(adds: str) -> None:
    assert "sharded" not in of_evaluation(adds).status.values()
