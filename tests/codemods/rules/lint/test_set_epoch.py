"""Samplers that never hear of the epoch (DDP501)."""

from __future__ import annotations

import pytest
from ddpify_codemods.rules.lint.set_epoch import RULE

from .wrapped import told

MADE = "other = DataLoader(data, 8, sampler=DistributedSampler(data{}))"
TRAINS = "    for x, y in other:\n        model(x).sum().backward()\n"
FIRST = "sampler = DistributedSampler(data)"


def test_a_sampler_is_told_the_epoch_or_not() -> None:
    assert told(RULE) == [FIRST]
    assert not told(RULE, "sampler.set_epoch(1)")


@pytest.mark.parametrize(
    ("given", "loop", "is_told"),
    [
        ("", "for e in range(3):", True),
        (", shuffle=False", "for e in range(3):", False),
        ("", "if True:", False),
        (", seed=next(orders)", "for e in range(3):", False),
    ],
)
def test_which_order_is_another_in_each_epoch(given: str, loop: str, is_told: bool) -> None:
    lines = told(
        RULE, f"{loop}\n" + "".join(f"    {line}\n" for line in TRAINS.splitlines()), before=f"{MADE.format(given)}\n"
    )
    assert lines == [FIRST, *([MADE.format("")] if is_told else [])]


def test_a_sampler_of_each_epoch_has_a_seed() -> None:
    made = "for e in range(3):\n    " + MADE
    assert told(RULE, f"{made.format(', seed=e')}\n{TRAINS}") == [FIRST]
    assert told(RULE, f"{made.format(', seed=1')}\n{TRAINS}") == [FIRST, MADE.format(", seed=1")]
