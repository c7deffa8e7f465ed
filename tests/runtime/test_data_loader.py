"""The drop-in DataLoader: the same batches as torch's, loaded in parts where that is exact."""

from __future__ import annotations

import copy
import gc
import multiprocessing
import warnings
from collections.abc import Iterator
from typing import Any

import numpy as np
import pytest
import torch
import torch.nn.functional as F
from ddpify_runtime import DataLoader, DistributedDataParallel
from ddpify_runtime.loading import held_state
from torch import Tensor, nn
from torch.utils.data import Dataset, WeightedRandomSampler

from tests.runtime.processes import run


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


class Endless:
    def __init__(self, sampler: Any) -> None:
        self.sampler = sampler

    def __iter__(self) -> Iterator[Any]:
        while True:
            yield from self.sampler


class WithEndlessWorkers(DataLoader[Any]):
    """As those that keep their workers by a batch sampler without an end."""

    def __init__(self, *args: Any, **kwargs: Any) -> None:
        super().__init__(*args, **kwargs)
        object.__setattr__(self, "batch_sampler", Endless(self.batch_sampler))
        self.batches = super().__iter__()

    def __len__(self) -> int:
        return 6

    def __iter__(self) -> Any:
        for _ in range(len(self)):
            yield next(self.batches)


class Collating(DataLoader[Any]):
    """One whose own method makes the batches, and counts them."""

    def __init__(self, dataset: Dataset[Any], **kwargs: Any) -> None:
        self.made = 0
        super().__init__(dataset, collate_fn=self.collate, **kwargs)

    def collate(self, samples: list[tuple[Tensor, int]]) -> tuple[Tensor, Tensor]:
        return torch.stack([x for x, _ in samples]) * 2, torch.tensor([y for _, y in samples])

    def __iter__(self) -> Any:
        for x, y in super().__iter__():
            self.made += 1
            yield x + 1, y


def derived(kind: type[DataLoader[Any]], workers: int) -> tuple[list[list[float]], int]:
    torch.manual_seed(5)
    dataset = Counted()
    loader = kind(dataset, batch_size=10, shuffle=True, num_workers=workers)
    found = [torch.cat([x[:, 0].to("cpu"), y.to("cpu").float()]).tolist() for _ in range(3) for x, y in loader]
    return found, dataset.loaded


@pytest.mark.parametrize("kind", [WithEndlessWorkers, Collating])
@pytest.mark.parametrize("workers", [0, 1])
def test_a_derived_class_loads_its_rows(kind: type[DataLoader[Any]], workers: int) -> None:
    (alone,) = run(1, derived, kind, workers)
    for found, loaded in run(2, derived, kind, workers):
        assert found == alone[0]
        assert workers or loaded < 0.8 * alone[1]  # the first four batches are loaded whole where they are collated


def left_workers(breaks: bool) -> list[bool]:
    """Whether workers that persist are there when nobody holds their loader any more."""
    gc.disable()
    loader = DataLoader(Counted(), batch_size=10, num_workers=1, persistent_workers=True)
    for place, _ in enumerate(loader):
        if breaks and place == 2:
            break
    workers = multiprocessing.active_children()
    del loader
    return [worker.is_alive() for worker in workers]


@pytest.mark.parametrize("breaks", [False, True])
def test_workers_that_persist_end_with_their_loader(breaks: bool) -> None:
    """Without a collection, in which torch would wait 5 s for each."""
    assert run(2, left_workers, breaks) == [[False], [False]]


def copied() -> list[list[float]]:
    loader = DataLoader(Counted(), batch_size=10)
    passes = [[x.sum().item() for x, _ in loader]]
    another = copy.deepcopy(loader)
    del loader
    return [*passes, [x.sum().item() for x, _ in another]]


def test_a_loader_may_be_copied() -> None:
    for first, second in run(2, copied):
        assert first == second


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


def views_of_one_loader() -> list[float]:
    """The noise of the samples in two passes that begin at once."""
    warnings.simplefilter("ignore")
    torch.manual_seed(5)
    loader = DataLoader(Counted("torch"), batch_size=10)
    return [float(each) for (x, _), (u, _) in zip(loader, loader, strict=True) for each in (x - u)[:, 1]]


def test_two_passes_at_once_have_no_noise_in_common() -> None:
    assert all(run(2, views_of_one_loader)[0])


class Weighted(Dataset[tuple[Tensor, Tensor]]):
    """23 samples with weights, which a script makes of what its model says of them."""

    def __init__(self) -> None:
        self.x = torch.randn(23, 4, dtype=torch.float64)
        self.weights: Any = torch.ones(23, dtype=torch.float64)

    def __len__(self) -> int:
        return len(self.x)

    def __getitem__(self, index: int) -> tuple[Tensor, Tensor]:
        return self.x[index], self.weights[index]


def weighted(workers: int) -> list[float]:
    """The parameters of a model that is trained on weights of its own making, and these."""
    torch.manual_seed(0)
    data, model = Weighted(), nn.Linear(4, 1).double()
    DistributedDataParallel(model)
    optimizer = torch.optim.SGD(model.parameters(), 0.1)
    for _ in range(3):
        for x, weight in DataLoader(data, 5, shuffle=True, num_workers=workers):
            optimizer.zero_grad()
            (model(x).squeeze(1).square() * weight).mean().backward()
            optimizer.step()
        with torch.no_grad():
            data.weights = torch.cat([F.softplus(model(x)).squeeze(1) for x, _ in DataLoader(data, 5)])
    return [*model.weight.flatten().tolist(), *data.weights.tolist()]


@pytest.mark.parametrize("workers", [0, 2])
@pytest.mark.parametrize("ranks", [2, 3])
@pytest.mark.filterwarnings("ignore")
def test_samples_that_are_made_of_outputs(ranks: int, workers: int) -> None:
    [alone] = run(1, weighted, workers)
    for found in run(ranks, weighted, workers):
        torch.testing.assert_close(found, alone, rtol=1e-12, atol=1e-12)


def weighted_out_of_sight() -> str:
    """What stops a worker that needs an output of which it holds a part, where nobody looks for it."""
    data = Weighted()
    with torch.no_grad():
        out = DistributedDataParallel(nn.Linear(4, 1).double())(data.x)[:, 0] * 2
    data.weights = [out] * (held_state.INTO + 1)
    try:
        for _ in DataLoader(data, 5, num_workers=1):
            pass
    except RuntimeError as error:
        return str(error)
    return ""


@pytest.mark.filterwarnings("ignore")
def test_a_worker_waits_for_no_rank() -> None:
    for said in run(2, weighted_out_of_sight):
        assert "a worker process of a loader needs the whole of a tensor of which every process holds a part" in said


class Broken(Counted):
    """Sample 13 cannot be read; counting makes it be loaded whole."""

    def __getitem__(self, index: int) -> tuple[torch.Tensor, int]:
        if index == 13:
            raise OSError("cannot identify image file")
        return super().__getitem__(index)


class Ending(Counted):
    """Sample 13 is sought by `next(…)`, and there is none."""

    def __getitem__(self, index: int) -> tuple[torch.Tensor, int]:
        return super().__getitem__(next(each for each in [index] if each != 13))


def an_end_within() -> list[str]:
    warnings.simplefilter("ignore")
    batches = iter(DataLoader(Ending("own generator"), batch_size=10))
    next(batches)
    with pytest.raises(RuntimeError) as error:
        next(batches)
    return [str(error.value)]


def test_the_end_of_an_iterator_in_a_sample_is_not_that_of_the_loader(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("DDPIFY_RANDOM", "original")
    assert run(2, an_end_within) == [["loading a sample raised StopIteration"]] * 2


def past_what_is_broken() -> list[float]:
    warnings.simplefilter("ignore")
    batches, found = iter(DataLoader(Broken("own generator"), batch_size=10)), list[float]()
    while True:
        try:
            x, _ = next(batches)
        except StopIteration:
            return found
        except OSError:
            found.append(-1.0)
            continue
        found.append(x.float().sum().item())


def test_a_loader_goes_on_behind_a_batch_that_cannot_be_read(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("DDPIFY_RANDOM", "original")
    (alone,) = run(1, past_what_is_broken)
    assert len(alone) == 6 and alone[1] == -1
    assert run(2, past_what_is_broken) == [alone] * 2
