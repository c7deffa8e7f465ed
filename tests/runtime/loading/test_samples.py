"""Samples that draw are drawn for by their place in the epoch, and loaded by one rank."""

from __future__ import annotations

import random
import warnings
from typing import Any

import numpy as np
import pytest
import torch
from ddpify_runtime import DataLoader
from torch import Tensor
from torch.utils.data import Dataset, Subset, TensorDataset, default_collate, get_worker_info

from tests.runtime.loading.stateful import LOADED
from tests.runtime.processes import run


@pytest.fixture(autouse=True)
def random_numbers_as_in_a_run(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("DDPIFY_RANDOM", "")


class Augmented(Dataset[tuple[Tensor, int]]):
    """60 samples that draw from each generator, from one of them now and then."""

    def __init__(self, late: bool) -> None:
        self.late = late

    def __len__(self) -> int:
        return 60

    def __getitem__(self, index: int) -> tuple[Tensor, int]:
        LOADED.add()
        late = np.random.rand() if self.late and index in (43, 35) else 0.0
        return torch.tensor([float(index), torch.rand(()).item(), random.random(), late], dtype=torch.float64), index


WORKERS: dict[str, dict[str, Any]] = {
    "none": {},
    "two": {"num_workers": 2},
    "persistent": {"num_workers": 2, "persistent_workers": True},
}


def augmented(workers: str, late: bool = True) -> tuple[list[Any], list[float]]:
    """Every epoch's samples, and the numbers that the loop draws beside them."""
    torch.manual_seed(1)
    random.seed(1)
    np.random.seed(1)
    LOADED.set(0)
    loader = DataLoader(Augmented(late), batch_size=12, shuffle=True, **WORKERS[workers])
    samples: list[Any] = []
    drawn = []
    for _ in range(2):
        samples.append([])
        for x, _ in loader:
            samples[-1] += x.tolist()
            drawn += [torch.rand(()).item(), random.random(), np.random.rand()]
    return samples, drawn


def test_augmentation_is_the_same_for_any_number_of_ranks_and_workers() -> None:
    found = {(size, workers): run(size, augmented, workers) for size in (2, 3) for workers in WORKERS}
    first = found[2, "none"][0][0]
    for (size, workers), ranks in found.items():
        assert all(rank == ranks[0] for rank in ranks)
        assert ranks[0] == found[2, workers][0]
        assert ranks[0][0][0] == first[0], (size, workers)  # in torch too, workers that persist go on in another order
    (alone,) = run(1, augmented, "two")
    assert alone[1] == found[2, "two"][0][1]
    assert [row[0] for row in alone[0][1]] == [row[0] for row in found[2, "two"][0][0][1]]


@pytest.mark.parametrize("workers", WORKERS)
def test_no_sample_has_the_noise_of_another(workers: str) -> None:
    epochs, _ = run(2, augmented, workers)[0]
    noise = [value for epoch in epochs for row in epoch for value in row[1:] if value]
    assert len(set(noise)) == len(noise) > 240


@pytest.mark.parametrize("size", [2, 3, 4])
def test_augmented_rows_are_loaded_once(size: int) -> None:
    run(size, augmented, "none", False)
    # The first batch of 12 whole, and a part of the other nine.
    assert LOADED.of(size) == [12 + 9 * 12 // size] * size


class Batched(Dataset[int]):
    """A data set that loads several samples at once."""

    def __init__(self, draws: bool) -> None:
        self.draws = draws

    def __len__(self) -> int:
        return 40

    def __getitems__(self, indices: list[int]) -> list[Tensor]:
        LOADED.add(len(indices))
        noise = torch.rand(len(indices)) if self.draws else torch.zeros(len(indices))
        return [torch.tensor([float(index), value]) for index, value in zip(indices, noise.tolist(), strict=True)]


def batched(draws: bool, part: bool) -> list[Any]:
    warnings.simplefilter("ignore")
    LOADED.set(0)
    torch.manual_seed(0)
    dataset: Any = Batched(draws)
    return [x.tolist() for x in DataLoader(Subset(dataset, range(40)) if part else dataset, 8, shuffle=True)]


@pytest.mark.parametrize("part", [False, True])
@pytest.mark.parametrize("draws", [False, True])
def test_samples_that_are_loaded_at_once(draws: bool, part: bool) -> None:
    (alone,) = run(1, batched, draws, part)
    ranks = run(2, batched, draws, part)
    assert ranks[0] == ranks[1] and (ranks[0] == alone or draws)
    assert LOADED.of(2) == ([40, 40] if draws else [8 + 4 * 4] * 2)


def worker_sees() -> list[Any]:
    """What worker_init_fn finds, and a transform that the script changes between two epochs."""
    torch.manual_seed(0)
    data = TensorDataset(torch.arange(12.0))

    def start(worker: int) -> None:
        info: Any = get_worker_info()
        assert type(info.dataset) is TensorDataset
        info.dataset.tensors = (info.dataset.tensors[0] + 100,)

    loader = DataLoader(data, 4, shuffle=True, num_workers=1, worker_init_fn=start)
    found = [x.tolist() for (x,) in loader]
    data.tensors = (data.tensors[0] * 2,)
    return found + [x.tolist() for (x,) in loader]


def test_a_worker_is_started_as_the_script_says() -> None:
    (alone,) = run(1, worker_sees)
    assert run(2, worker_sees) == [alone, alone]


class Broken(Dataset[Any]):
    """40 samples, some of which cannot be read."""

    def __init__(self, parts: bool) -> None:
        self.parts = parts
        self.found = 0

    def __len__(self) -> int:
        return 40

    def __getitem__(self, index: int) -> Any:
        LOADED.add()
        broken = index in (27, 31, 38)
        if self.parts:
            return {"x": None if broken else torch.tensor(float(index)), "y": None if broken else index}
        return None if broken else torch.tensor(float(index))

    def collate(self, samples: list[Any]) -> Any:
        kept = [each for each in samples if (each["x"] if self.parts else each) is not None]
        if len(kept) < len(samples):
            self.found += len(samples) - len(kept)
            print("left out")
        return default_collate(kept)


def without_broken(parts: bool) -> tuple[list[Any], int]:
    warnings.simplefilter("ignore")
    LOADED.set(0)
    torch.manual_seed(0)
    data = Broken(parts)
    batches = [each["x"] if parts else each for each in DataLoader(data, 8, collate_fn=data.collate)]
    return [each.tolist() for each in batches], data.found


@pytest.mark.parametrize("parts", [False, True])
def test_samples_that_are_left_out_are_loaded_whole(parts: bool) -> None:
    """Whose samples they are is not known where the others are loaded: ranks would have unequally many."""
    (alone,) = run(1, without_broken, parts)
    assert alone[1] == 3
    assert run(2, without_broken, parts) == [alone, alone]


def kept_as_they_are() -> list[Any]:
    LOADED.set(0)
    return [*DataLoader(Broken(False), 8, collate_fn=list)]


def test_lists_of_samples_are_loaded_in_parts() -> None:
    ranks = run(2, kept_as_they_are)
    assert LOADED.of(2) == [4 * 8 + 4] * 2
    assert ranks[0] == ranks[1] == run(1, kept_as_they_are)[0]
