"""How long the longest of the samples is, and what collate functions compute with it."""

from __future__ import annotations

import pytest
from ddpify_codemods.facts.flow.padding import Padded

from tests.codemods.facts.flow.test_lengthened import LONGEST, ROWS, SORT, made

ONE_ROW = "[b[0] + [PAD] * {} for b in batch]"


@pytest.mark.parametrize(
    "lines",
    [
        LONGEST + ROWS,
        "n = max((len(b[0]) for b in batch), default=0)\n" + ROWS,
        "n = max(max(len(b[0]) for b in batch), 16)\n" + ROWS,
        f"{LONGEST}n = n + 1\n{ROWS}",
        f"{SORT}n = len(batch[0][0])\n{ROWS}",
        f"{LONGEST}return torch.tensor({ONE_ROW.format('max(n - len(b[0]), 0)')})",
    ],
)
def test_how_long_the_longest_is(lines: str) -> None:
    assert made(lines) == Padded(1, "PAD")


@pytest.mark.parametrize(
    "lines",
    [
        f"n = sum(len(b[0]) for b in batch)\n{ROWS}",
        f"n = len(batch[0][0])\n{ROWS}",  # of the first, which is not the longest
        f"{LONGEST}n = n - 1\n{ROWS}",
        f"{LONGEST}return torch.tensor({ONE_ROW.format('max(n - len(b[0]), 1)')})",
        f"{LONGEST}return torch.tensor({ONE_ROW.format('(n - len(batch[0][0]))')})",
        f"{LONGEST}return torch.tensor([b[0] + [n] * (n - len(b[0])) for b in batch])",
        f"{LONGEST}return torch.tensor([b[0] + [0, 1] * (n - len(b[0])) for b in batch])",
        f"{LONGEST}return torch.stack([F.pad(b[0], (0, n - len(b[0])), mode='reflect') for b in batch])",
        f"{LONGEST}return torch.stack([torch.tensor(b[0] + [PAD] * (n - len(b[0]))) for b in batch], 1)",
    ],
)
def test_what_is_something_else_is_not_known(lines: str) -> None:
    assert not isinstance(made(lines), Padded)
