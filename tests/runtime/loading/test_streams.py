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
    batch: Tensor = samples.load(Request([*places], places, 6, False, parts, 7)).batch
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
    told = [samples.load(Request([*places], places, 6, False, parts, 7)).drawn for parts in (2, 0)]
    late = samples.load(Request([12], range(12, 13), 6, False, 0, 7)).drawn
    assert [*told, late] == [{"torch"}, None, {"torch", "python", "numpy"}]


def drawn_by_all() -> list[float]:
    return [torch.rand(()).item(), random.random(), float(np.random.rand())]


def test_the_common_numbers_go_on_as_if_nothing_had_been_loaded() -> None:
    """Also a second normal number that Python or numpy has in hand, and none that a sample has left."""
    for normal in (False, True):
        for _ in range(2):  # the second time numpy's generator is known to have no number in hand
            states = torch.get_rng_state(), random.getstate(), np.random.get_state()
            if normal:
                random.gauss(0, 1), np.random.randn()
                states = torch.get_rng_state(), random.getstate(), np.random.get_state()
            with streams.kept():
                streams.seeding(streams.HOST, 7)(3)
                drawn_by_all()
                random.gauss(0, 1), np.random.randn()
            assert torch.equal(torch.get_rng_state(), states[0]) and random.getstate() == states[1]
            found = np.random.get_state()
            assert all(np.array_equal(one, other) for one, other in zip(found, states[2], strict=True))


def test_no_two_samples_have_a_stream_in_common() -> None:
    seen: set[float] = set()
    for of_pass in (7, 7 + 0x9E3779B97F4A7C15):
        seed = streams.seeding(streams.HOST, of_pass)
        for position in range(200):
            seed(position)
            seen.update(drawn_by_all())
            seed(position)
            assert seen.issuperset(drawn_by_all())
    assert len(seen) >= 2 * 200 * 3 - 2  # torch's have 24 bits: two may be alike


SEEDED = ["torch", "python", "numpy"]


@pytest.mark.parametrize("name", SEEDED)
def test_only_what_samples_draw_from_is_seeded(name: str, monkeypatch: pytest.MonkeyPatch) -> None:
    draws: dict[str, Callable[[], float]] = {
        "torch": lambda: torch.rand(()).item(),
        "python": random.random,
        "numpy": np.random.rand,
    }

    class Drawing(Dataset[Tensor]):
        def __getitem__(self, index: int) -> Tensor:
            return torch.tensor([draws[name]()])

    samples = Samples(Drawing(), torch.utils.data.default_collate)
    load(samples, 0, parts=2)
    asked, seeding = [], streams.seeding

    def noted(names: frozenset[str], of_pass: int) -> Callable[[int], None]:
        asked.append(names)
        return seeding(names, of_pass)

    monkeypatch.setattr(streams, "seeding", noted)
    for first in (6, 12):
        places = range(first, first + 6, 2)
        samples.load(Request([*places], places, 6, True, 0, 7))
    assert asked == [{name}, {name}]
