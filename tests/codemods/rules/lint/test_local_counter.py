"""Counts of a share that are divided by the size of the whole set (DDP507)."""

from __future__ import annotations

import pytest
from ddpify_codemods.rules.lint.local_counter import RULE

from .wrapped import told

SHOWN = "print(hits / len(loader.dataset))"


def test_a_count_of_this_rank() -> None:
    assert told(RULE, SHOWN) == [SHOWN]
    assert not told(RULE, SHOWN, is_wrapped=False)
    assert not told(RULE, f"dist.all_reduce(hits)\n{SHOWN}")


@pytest.mark.parametrize("size", ["len(loader)", "len(whole.dataset)", "len(data)"])
def test_other_sizes(size: str) -> None:
    assert not told(RULE, f"whole = DataLoader(data, 8)\nprint(hits / {size})\n")
