"""The batches of all ranks, held against those of one process."""

from __future__ import annotations

from ddpify.verify.batches import compare_batches
from ddpify.verify.runs import Batch, Pass, Record


def drawn(*batches: tuple[int, ...]) -> Record:
    record = Record()
    record.batches = [Batch(1, batch) for batch in batches]
    record.passes = {1: Pass(1, "RandomSampler", "BatchSampler", len(batches), 0, False, 0)}
    return record


def test_the_ranks_together_hold_what_one_process_drew() -> None:
    found = compare_batches(drawn((1, 2, 3, 4), (5, 6)), [drawn((1, 3), (5,)), drawn((2, 4), (6,))])
    assert (found.same, found.divided, found.number) == (2, 2, 0)


def test_the_first_other_batch_is_named_by_its_place() -> None:
    found = compare_batches(drawn((1, 2), (3, 4)), [drawn((1,), (3,)), drawn((2,), (9,))])
    assert (found.number, found.place, found.whole, found.parts) == (1, 2, (3, 4), ((3,), (9,)))
