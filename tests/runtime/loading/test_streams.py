"""A stream of random numbers for each sample: what is drawn from is seen, and only that is seeded."""

from __future__ import annotations

import random
from collections.abc import Callable
from typing import Any

import numpy as np
import pytest
import torch
from ddpify_runtime.loading import streams
from ddpify_runtime.loading.samples import Request, Samples
from torch import Tensor, nn
from torch.utils.data import Dataset

DRAWS: dict[str, Callable[[], Any]] = {
    "random": random.random,
    "bits": lambda: random.getrandbits(3),
    "a normal number": lambda: random.gauss(0, 1),
    "a shuffle": lambda: random.shuffle([1, 2, 3]),
}


@pytest.mark.parametrize("name", DRAWS)
def test_a_draw_of_python_is_seen_and_undone(name: str) -> None:
    for _ in range(3):  # of normal numbers each second one is kept from the one before
        state, marks = random.getstate(), streams.marks()
        DRAWS[name]()
        assert streams.moved(marks) == {"python"}
        streams.restore(marks, {"python"})
        assert random.getstate() == state and not streams.moved(marks)
        DRAWS[name]()


class Texts(Dataset[Tensor]):
    """Of several lengths; from sample 10 on they are drawn from another generator too."""

    def __getitem__(self, index: int) -> Tensor:
        numbers = torch.rand(1 + index % 3)
        return numbers if index < 10 else numbers + random.random() + float(np.random.rand())


def padded(samples: list[Tensor]) -> Tensor:
    return nn.utils.rnn.pad_sequence(samples, batch_first=True)


def load(samples: Samples, first: int, *, parts: int) -> Tensor:
    places = range(first, first + 6)
    batch: Tensor = samples.__getitems__(Request([*places], places, 6, False, parts, 7)).batch
    return batch


def test_what_is_loaded_whole_is_seeded_as_far_as_it_draws() -> None:
    learnt, seeded = Samples(Texts(), padded), Samples(Texts(), padded)
    assert torch.equal(load(learnt, 0, parts=2), load(seeded, 0, parts=0)) and learnt.steady
    for first in (3, 6, 12):  # the draws of the last two begin late
        before = streams.marks()
        assert torch.equal(load(learnt, first, parts=0), load(seeded, first, parts=0))
        assert not streams.moved(before)
    assert learnt.drawn == {"torch", "python", "numpy"}


def test_what_may_not_be_loaded_twice_is_seeded_whole() -> None:
    numbers = iter(range(100))

    class Counted(Texts):
        def __getitem__(self, index: int) -> Tensor:
            return super().__getitem__(index) + next(numbers)

    samples = Samples(Counted(), padded)
    load(samples, 0, parts=2)
    assert not samples.steady
    load(samples, 12, parts=0)
    assert next(numbers) == 12


def test_a_batch_tells_what_its_process_has_learnt() -> None:
    samples = Samples(Texts(), padded)
    places = range(6)
    told = [samples.__getitems__(Request([*places], places, 6, False, parts, 7)).drawn for parts in (2, 0)]
    late = samples.__getitems__(Request([12], range(12, 13), 6, False, 0, 7)).drawn
    assert [*told, late] == [{"torch"}, None, {"torch", "python", "numpy"}]
