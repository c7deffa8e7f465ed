"""Loops over batches are followed: as they are, counted, zipped, in bars, by hand."""

from __future__ import annotations

import ast

import pytest

from tests.codemods.facts.flow.followed import TRAINING, followed, reasons

LOOP = "    for x, y in train_loader:"


@pytest.mark.parametrize(
    "loop",
    [
        LOOP,
        "    for i, (x, y) in enumerate(train_loader):",
        "    for (x, y), _ in zip(train_loader, range(9)):",
    ],
)
def test_each_way_to_run_over_a_loader(loop: str) -> None:
    assert reasons(TRAINING.replace(LOOP, loop)) == []


def test_a_loop_that_stops_on_what_a_rank_sees_is_decided_together() -> None:
    found = followed(TRAINING + "        if loss > 3:\n            break\n").found
    assert {ast.unparse(each.node) for together in found.reductions.values() for each in together} == {"loss"}
