"""The drop-in DataLoader: the same batches as torch's, loaded in parts where that is exact."""

from __future__ import annotations

import mmap
import multiprocessing
import os
import random
import struct
import warnings
from typing import Any

import numpy as np
import pytest
import torch
from ddpify_runtime import DataLoader, get_world_size, rank_zero_only
from torch import Tensor
from torch.utils.data import Dataset, Subset, TensorDataset, WeightedRandomSampler, get_worker_info

from . import processes
from .processes import run


@pytest.fixture(autouse=True)
def random_numbers_as_in_a_run(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("DDPIFY_RANDOM", "")


class Counted(Dataset[tuple[Tensor, int]]):
    """53 samples; counts what is loaded; may draw random numbers, as augmentation does."""

    def __init__(self, draws: str = "") -> None:
        self.draws, self.loaded = draws, 0
        self.own = np.random.default_rng(0)

    def __len__(self) -> int:
        return 53

    def __getitem__(self, index: int) -> tuple[Tensor, int]:
        self.loaded += 1
        noise = 0.0
        if self.draws == "torch":
            noise = torch.rand(()).item()
        elif self.draws == "numpy":
            noise = np.random.rand()
        elif self.draws == "own generator":
            noise = float(self.own.random())
        return torch.tensor([float(index), noise]), index % 3


def batches(draws: str, options: dict[str, Any]) -> tuple[list[list[float]], int, float]:
    """Two epochs: every batch as numbers, how many samples this rank loaded, and the next random number."""
    warnings.simplefilter("ignore")
    torch.manual_seed(5)
    np.random.seed(5)
    dataset = Counted(draws)
    if options.pop("weighted", False):
        options["sampler"] = WeightedRandomSampler(torch.linspace(0.1, 1, 53).tolist(), 40)
    loader = DataLoader(dataset, batch_size=10, **options)
    found = []
    for _ in range(2):
        for x, y in loader:
            assert len(x) == x.size(0) == x.shape[0] == len(y)
            found.append(torch.cat([x.to("cpu").float().view(len(x), -1), y[:, None]], dim=1).flatten().tolist())
    return found, dataset.loaded, torch.rand(()).item()


@pytest.mark.parametrize("draws", ["", "torch", "numpy", "own generator"])
@pytest.mark.parametrize(
    "options",
    [
        {"shuffle": True},
        {"shuffle": True, "drop_last": True},
        {"shuffle": True, "num_workers": 1, "persistent_workers": True},
        {"weighted": True},
        {},
    ],
)
def test_same_batches_in_the_same_order(draws: str, options: dict[str, Any], monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("DDPIFY_RANDOM", "original")
    (alone,) = run(1, batches, draws, options)
    for rank in run(3, batches, draws, options):
        assert rank[0] == alone[0]
        assert rank[2] == alone[2]


@pytest.mark.parametrize("draws", ["", "torch", "numpy"])
def test_each_rank_loads_its_rows(draws: str) -> None:
    loaded = [count for _, count, _ in run(3, batches, draws, {"shuffle": True})]
    # The first batch of 10 whole, then a third of each: 43 of the first epoch, 53 of the second.
    assert sum(loaded) == 3 * 10 + 43 + 53
    assert max(loaded) - min(loaded) <= 10


def test_one_process_draws_nothing_new(monkeypatch: pytest.MonkeyPatch) -> None:
    alone = run(1, batches, "torch", {"shuffle": True})
    monkeypatch.setenv("DDPIFY_RANDOM", "original")
    assert run(1, batches, "torch", {"shuffle": True}) == alone


def test_a_sampler_is_given_when_the_loader_is_made() -> None:
    """As torch's own: there is no such script to convert (D4)."""
    with pytest.raises(ValueError, match="sampler attribute should not be set"):
        DataLoader(Counted()).sampler = WeightedRandomSampler([1.0] * 53, 53)


def test_random_numbers_of_one_process_are_loaded_whole(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("DDPIFY_RANDOM", "original")
    assert [count for _, count, _ in run(2, batches, "torch", {"shuffle": True})] == [106, 106]


class Loaded:
    """Counts the rows that each rank and its workers load, where no data set sees it."""

    def __init__(self) -> None:
        self.counts, self.lock = mmap.mmap(-1, 8 * 4), multiprocessing.get_context("fork").Lock()

    def set(self, count: int) -> None:
        """The count of this rank."""
        struct.pack_into("q", self.counts, 8 * int(os.environ["RANK"]), count)

    def add(self, rows: int = 1) -> None:
        """This rank has loaded more rows."""
        with self.lock:
            self.set(self.of(4)[int(os.environ["RANK"])] + rows)

    def of(self, ranks: int) -> list[int]:
        """The counts of the first ranks."""
        return list(struct.unpack_from(f"{ranks}q", self.counts))


LOADED = Loaded()


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


class Slotted:
    __slots__ = ("calls",)

    def __init__(self) -> None:
        self.calls = 0.0


SLOTTED = Slotted()


class Stateful(Dataset[dict[str, Any]]):
    """40 samples that may depend on what was loaded before them."""

    def __init__(self, kind: str) -> None:
        self.kind, self.drawn, self.pool = kind, 0, [0.0] * 40
        self.unused = np.random.RandomState(3)
        self.visits = np.zeros(1000)
        self.memo: dict[int, float] = {}
        self.seen: dict[int, bool] = {}
        self.late: Any = None
        self.numbers = (float(i) for i in range(1000))

    def __len__(self) -> int:
        return 40

    def __getitem__(self, index: int, earlier: list[int] = []) -> dict[str, Any]:  # noqa: B006
        LOADED.add()
        value = 0.0
        if self.kind == "counter" or (self.kind == "late counter" and index == 25):
            self.drawn += 1
            value = float(self.drawn)
        elif self.kind == "visits":
            self.visits[index] += 1
            value = self.visits[index]
        elif self.kind == "used generator":
            value = self.unused.rand()
        elif self.kind == "a global generator":
            value = GENERATOR.random()
        elif self.kind == "seen":
            self.seen[index] = True
            value = float(len(self.seen))
        elif self.kind == "an attribute of a function":
            vars(stateful).update(calls=vars(stateful).get("calls", 0) + 1)
            value = float(vars(stateful)["calls"])
        elif self.kind == "a slot":
            SLOTTED.calls += 1
            value = SLOTTED.calls
        elif self.kind == "a module":
            processes.counter += 1  # type: ignore[attr-defined]
            value = float(processes.counter)  # type: ignore[attr-defined]
        elif self.kind == "a default argument":
            earlier.append(index)
            value = float(len(earlier))
        elif self.kind == "iterator":
            value = next(self.numbers)
        elif self.kind == "memo":
            value = self.memo.setdefault(index, index / 3)
        elif self.kind == "opened late":
            self.late = self.late or [1.0]
        return {"x": torch.tensor([float(index), value]), "name": f"{index}.png", "y": index % 2}


GENERATOR = random.Random(0)


def stateful(kind: str, workers: int, collate: Any = None, batch_size: int = 8) -> tuple[Any, list[str], int]:
    LOADED.set(0)
    vars(processes)["counter"] = 0
    torch.manual_seed(0)
    generator = torch.Generator().manual_seed(2)
    dataset = Stateful(kind)
    if kind != "iterator":
        del dataset.numbers
    loader = DataLoader(dataset, batch_size, shuffle=True, num_workers=workers, generator=generator, collate_fn=collate)
    with warnings.catch_warnings(record=True) as said:
        warnings.simplefilter("always")
        found = [
            (batch["x"].tolist(), list(batch["name"]), isinstance(batch["name"], list), batch["y"].tolist())
            for _ in range(2)
            for batch in loader
        ]
    return (
        found,
        [str(each.message) for each in said if "ddpify" in str(each.message)],
        sum(LOADED.of(get_world_size())),
    )


REASONS = {
    "counter": "changes drawn",
    "visits": "changes visits",
    "used generator": "changes unused",
    "a global generator": "changes GENERATOR",
    "seen": "loaded again",
    "an attribute of a function": "changes stateful.calls",
    "a default argument": "changes __getitem__().earlier",
    "a slot": "changes SLOTTED.calls",
    "a module": "changes processes.counter",
}


@pytest.mark.parametrize(
    "kind, reason, workers",
    [(*item, workers) for item in REASONS.items() for workers in (0, 2)] + [("iterator", "iterator (numbers)", 0)],
)
def test_samples_that_depend_on_earlier_ones_are_loaded_whole(kind: str, reason: str, workers: int) -> None:
    ((alone, _, _),) = run(1, stateful, kind, workers)
    for found, said, _ in run(2, stateful, kind, workers):
        assert found == alone
        assert len(said) == 1 and reason in said[0]


@pytest.mark.parametrize("workers", [0, 2])
@pytest.mark.parametrize("kind", ["plain", "memo", "opened late"])
def test_samples_that_do_not_are_loaded_in_parts(kind: str, workers: int) -> None:
    ((alone, _, _),) = run(1, stateful, kind, workers)
    for found, said, _ in run(2, stateful, kind, workers):
        assert found == alone
        assert not said
    if not workers:
        again = int(kind == "memo")  # a sample is loaded again, to see whether it is the same
        assert LOADED.of(2) == [8 + again + 9 * 4] * 2


@pytest.mark.parametrize("workers", [0, 2])
def test_a_counter_that_begins_later_stops_the_run(workers: int) -> None:
    with pytest.raises(AssertionError, match=r"loaded in parts, one by each process, but now .* changes drawn"):
        run(2, stateful, "late counter", workers, None, 4)


def uses() -> list[Any]:
    """Everything that is not the training forward sees the whole batch."""
    data = TensorDataset(torch.arange(24.0).view(12, 2), torch.arange(12))
    torch.manual_seed(0)
    answers: list[Any] = []
    for x, y in list(DataLoader(data, batch_size=6, shuffle=True))[1:]:
        answers += [
            x.mean().item(),
            (y == y.sort().values).tolist(),
            x[2:4].tolist(),
            [row.tolist() for row in x],
            x.numpy().sum().item(),
            torch.autograd.Variable(x).view(-1, 1).shape[0],
            x.unsqueeze(1).shape,
            x.t().shape,
            str(y),
            x.data.add_(1).sum().item(),
            torch.stack([x, x]).shape,
        ]
        x += 5
        x.requires_grad_()
        (x * x).sum().backward()
        answers += [x.tolist(), x.grad.tolist(), x.requires_grad]
    return answers


def test_a_part_looks_like_the_whole() -> None:
    (alone,) = run(1, uses)
    assert run(2, uses) == [alone, alone]


def changes() -> list[Any]:
    """A view follows a change in place, a copy does not."""
    torch.manual_seed(0)
    _, (x,) = DataLoader(TensorDataset(torch.arange(24.0).view(12, 2)), batch_size=6, shuffle=True)
    copied, view = x.double(), x.view(-1, 2, 1)
    x += 5
    return [copied.tolist(), view.tolist(), x.tolist()]


def test_a_copy_does_not_follow_a_change() -> None:
    (alone,) = run(1, changes)
    assert run(2, changes) == [alone, alone]


def pad(samples: list[dict[str, Any]]) -> dict[str, Any]:
    """To the longest, as for texts; here as long as the index says."""
    rows = [torch.ones(int(sample["x"][0])) for sample in samples]
    names = [sample["name"] for sample in samples]
    return {"x": torch.nn.utils.rnn.pad_sequence(rows, batch_first=True), "name": names, "y": torch.zeros(len(rows))}


def stack(samples: list[dict[str, Any]]) -> dict[str, Any]:
    return {
        "x": torch.stack([sample["x"] for sample in samples]),
        "name": [sample["name"] for sample in samples],
        "y": torch.tensor([sample["y"] for sample in samples]),
    }


def mix(samples: list[dict[str, Any]]) -> dict[str, Any]:
    """Mixup."""
    batch = stack(samples)
    return {**batch, "x": batch["x"] + torch.rand(()) * batch["x"].flip(0)}


@pytest.mark.parametrize("workers", [0, 2])
@pytest.mark.parametrize(
    "collate, reason", [(pad, "one row for each sample"), (mix, "collate function draws"), (stack, "")]
)
def test_a_collate_function_of_ones_own(collate: Any, reason: str, workers: int) -> None:
    ((alone, _, _),) = run(1, stateful, "plain", workers, collate)
    for found, said, _ in run(2, stateful, "plain", workers, collate):
        assert found == alone or collate is mix
        assert len(said) == bool(reason) and reason in "".join(said)
    if not workers:
        assert LOADED.of(2) == ([80, 80] if reason else [4 * 8 + 6 * 4] * 2)


def pad_later(samples: list[dict[str, Any]]) -> dict[str, Any]:
    """As long as the longest, which is seen at the index 25 alone."""
    rows = [torch.ones(1 + (sample["x"][0] == 25)) for sample in samples]
    return {**stack(samples), "x": torch.nn.utils.rnn.pad_sequence(rows, batch_first=True)}


def test_padding_that_begins_later_stops_the_run() -> None:
    with pytest.raises(AssertionError, match="now a batch has another form or size than the first ones"):
        run(2, stateful, "plain", 0, pad_later)


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


def names() -> list[Any]:
    """What a script does with a list of which each rank holds a part."""
    torch.manual_seed(0)
    data: Any = [(float(i), f"{i}.png") for i in range(12)]
    loader: DataLoader[Any] = DataLoader(data, 4, shuffle=True)
    answers: list[Any] = []
    for _, name in list(loader)[1:]:
        rank_zero_only(str)(name)  # which does not communicate
        answers += [
            len(name),
            isinstance(name, (list, tuple)),
            name[0],
            name[1:3],
            [*name],
            ", ".join(name),
            str(name),
            name == list(name),
            sorted(name),
            name[-1] in name,
            [*name, "more"],
            list(zip(name, range(4), strict=True)),
        ]
    return answers


def test_a_part_of_a_list_looks_like_the_whole() -> None:
    (alone,) = run(1, names)
    assert run(2, names) == [alone, alone]
