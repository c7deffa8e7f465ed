"""Splits that are another one on each rank (DDP519)."""

from __future__ import annotations

import pytest
from ddpify_codemods.rules.lint.unequal_split import RULE

from .wrapped import told

SPLIT = "parts = torch.utils.data.random_split(data, [9, 1])"


@pytest.mark.parametrize(
    ("line", "is_told"),
    [
        (SPLIT, True),
        (SPLIT.replace("])", "], generator=own)"), False),
        ("from sklearn.model_selection import train_test_split as cut; parts = cut(data)", True),
        ("from sklearn.model_selection import train_test_split as cut; parts = cut(data, random_state=1)", False),
    ],
)
def test_which_split_has_a_seed(line: str, is_told: bool) -> None:
    assert told(RULE, before=f"{line}\n") == ([line] if is_told else [])


@pytest.mark.parametrize(("seed", "is_told"), [("3", False), ("dist.get_rank()", True)])
def test_a_seed_that_all_ranks_have(seed: str, is_told: bool) -> None:
    assert bool(told(RULE, before=f"torch.manual_seed({seed})\n{SPLIT}\n")) is is_told
