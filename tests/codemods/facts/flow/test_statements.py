"""Statements are followed: both branches, functions, what they assign."""

from __future__ import annotations

import pytest

from tests.codemods.facts.flow.followed import TRAINING, followed, reasons

STEP = "        optimizer.step()\n"


@pytest.mark.parametrize(
    "lines",
    [
        "        if epoch > 0:\n            total = 0\n",
        "        with torch.no_grad():\n            x + 1\n",
        "        try:\n            pass\n        finally:\n            pass\n",
    ],
)
def test_statements_that_change_nothing(lines: str) -> None:
    assert reasons(TRAINING.replace(STEP, STEP + lines)) == []


def test_a_decision_by_what_a_rank_sees_is_reduced_or_refused() -> None:
    found = followed(TRAINING.replace(STEP, "        if x.max() > 0.5:\n            optimizer.step()\n"))
    assert found.problems or found.found.reductions
