"""IterableDatasets: every rank reads the stream that one process reads, with workers too, and says so once."""

from __future__ import annotations

import warnings
from collections.abc import Iterator
from typing import Any

import pytest
import torch
from ddpify_runtime import DataLoader
from torch.utils.data import IterableDataset, get_worker_info
from torch.utils.data.datapipes.iter import IterableWrapper

from tests.runtime.processes import run


class Stream(IterableDataset[int]):
    """Fourteen numbers, of which each worker reads its own, as torch's documentation shows it."""

    def __iter__(self) -> Iterator[int]:
        worker = get_worker_info()
        first, step = (0, 1) if worker is None else (worker.id, worker.num_workers)
        return iter(range(first, 14, step))


def pipe() -> Any:
    """A stream that torch's own loader gives each rank another part of, where there is a process group."""
    return IterableWrapper([*range(14)]).shuffle().sharding_filter()


def read(kind: str, workers: int) -> tuple[list[list[int]], float, int]:
    """The batches of two passes, the next random number, and how often it was said that all is loaded."""
    torch.manual_seed(3)
    stream = Stream() if kind == "stream" else pipe()
    loader: Any = DataLoader(stream, batch_size=4, num_workers=workers)
    with warnings.catch_warnings(record=True) as caught:
        warnings.simplefilter("always")
        batches = [batch.tolist() for _ in range(2) for batch in loader]
    return batches, torch.rand(()).item(), sum("is loaded whole" in str(each.message) for each in caught)


@pytest.mark.parametrize("workers", [0, 2])
@pytest.mark.parametrize("kind", ["stream", "pipe"])
def test_every_rank_reads_what_one_process_reads(kind: str, workers: int) -> None:
    ((batches, drawn, said),) = run(1, read, kind, workers)
    assert said == 0 and len(batches) == 2 * 4
    for ranks in (2, 3):
        assert run(ranks, read, kind, workers) == [(batches, drawn, 1)] * ranks
