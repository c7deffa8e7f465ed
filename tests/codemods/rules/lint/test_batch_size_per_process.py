"""Batch sizes of an option that each process takes (DDP520)."""

from __future__ import annotations

import pytest
from ddpify_codemods.rules.lint.batch_size_per_process import RULE

from .wrapped import told

MADE = "loader = DataLoader(data, batch_size=args.batch_size, sampler=sampler)"


def test_the_size_of_an_option() -> None:
    assert told(RULE, before=f"{MADE}\n") == [MADE]
    assert not told(RULE)


@pytest.mark.parametrize(
    "line",
    [
        "args.batch_size = args.batch_size // world_size",
        "lr = args.lr * world_size",
        'parser.add_argument("--batch-size", help="per GPU")',
    ],
)
def test_what_says_what_is_meant(line: str) -> None:
    assert not told(RULE, before=f"{line}\n{MADE}\n")
