"""DistributedSampler: the order of one process on every rank; the loader takes this rank's rows of each batch."""

from __future__ import annotations

import copy
from collections.abc import Iterator
from typing import Any

import pytest
import torch
import torch.utils.data
from ddpify_runtime import DataLoader, DistributedSampler, DistributedSamplerWrapper
from torch import Tensor
from torch.utils.data import Dataset, IterableDataset, RandomSampler, SequentialSampler, WeightedRandomSampler

from .processes import run

WEIGHTS = torch.linspace(0.1, 1, 53).tolist()


class Counted(Dataset[Tensor]):
    """53 samples; counts what is loaded."""

    loaded = 0

    def __len__(self) -> int:
        return 53

    def __getitem__(self, index: int) -> Tensor:
        self.loaded += 1
        return torch.tensor([float(index)])


class Stream(IterableDataset[int]):
    def __iter__(self) -> Iterator[int]:
        return iter(range(9))


def options(kind: str, named: bool) -> dict[str, Any]:
    """How a loader is told its order; by its sampler where that is named."""
    generator = {"generator": torch.Generator().manual_seed(9)} if "generator" in kind else {}
    if "weighted" in kind:
        sampler = WeightedRandomSampler(WEIGHTS, 40)
        return {"sampler": DistributedSamplerWrapper(sampler) if named else sampler}
    if not named:
        return {"shuffle": "shuffled" in kind, **generator}
    return {"sampler": DistributedSampler(Counted(), shuffle="shuffled" in kind), **generator}


KINDS = ["shuffled", "shuffled with a generator", "in order", "weighted"]


def batches(kind: str, named: bool, loader: type = DataLoader) -> list[list[float]]:
    """Three passes: every batch, whole, and the next random number."""
    torch.manual_seed(5)
    made = loader(Counted(), batch_size=10, **options(kind, named))
    found = [x.to("cpu").flatten().tolist() for _ in range(3) for x in made]
    return [*found, [torch.rand(()).item(), len(made), len(made.sampler), made.batch_size]]


@pytest.mark.parametrize("kind", KINDS)
def test_alone_it_is_torch_s_own_order(kind: str) -> None:
    assert batches(kind, named=True) == batches(kind, named=False, loader=torch.utils.data.DataLoader)


def test_alone_it_is_torch_s_own_sampler() -> None:
    assert isinstance(DistributedSampler(Counted(), shuffle=True), RandomSampler)
    assert isinstance(DistributedSampler(Counted(), shuffle=False), SequentialSampler)
    own = WeightedRandomSampler(WEIGHTS, 40)
    assert DistributedSamplerWrapper(own) is own


@pytest.mark.parametrize("kind", KINDS)
def test_the_global_batches_of_one_process(kind: str) -> None:
    alone = batches(kind, named=False)
    assert run(3, batches, kind, True) == [alone] * 3


def second_pass(kind: str) -> int:
    """How many samples this rank loads in its second pass."""
    torch.manual_seed(5)
    dataset = Counted()
    made = DataLoader(dataset, batch_size=10, **options(kind, named=True))
    list(made)
    before = dataset.loaded
    list(made)
    return dataset.loaded - before


@pytest.mark.parametrize("kind", ["shuffled", "in order"])
def test_each_rank_loads_its_rows(kind: str) -> None:
    assert run(3, second_pass, kind) == [21, 16, 16]  # of 5 batches of 10 and one of 3


def refused(arguments: dict[str, Any]) -> str:
    with pytest.raises(ValueError) as caught:
        DistributedSampler(Counted(), **arguments)
    return str(caught.value)


@pytest.mark.parametrize("arguments", [{"num_replicas": 3}, {"rank": 2}, {"drop_last": True}])
def test_another_part_is_refused(arguments: dict[str, Any]) -> None:
    assert len({text.replace("rank 0 of", "rank 1 of") for text in run(2, refused, arguments)}) == 1


def test_the_arguments_of_torch_for_this_process() -> None:
    sampler: Any = DistributedSampler(Counted(), num_replicas=1, rank=0)
    assert len(sampler) == 53


def test_with_a_seed_the_epoch_counts() -> None:
    sampler: Any = DistributedSampler(Counted(), shuffle=True, seed=3)
    theirs: Any = torch.utils.data.DistributedSampler(Counted(), 1, 0, shuffle=True, seed=3)
    for epoch in range(2):
        sampler.set_epoch(epoch)
        theirs.set_epoch(epoch)
        state = torch.get_rng_state()
        assert list(sampler) == list(sampler) == list(theirs)
        assert torch.equal(state, torch.get_rng_state())


@pytest.mark.parametrize("shuffle", [True, False])
def test_without_a_seed_the_epoch_does_not_count(shuffle: bool) -> None:
    def order(epoch: int) -> list[list[int]]:
        torch.manual_seed(5)
        sampler: Any = DistributedSampler(Counted(), shuffle=shuffle)
        sampler.set_epoch(epoch)
        return [list(sampler), list(copy.copy(sampler))]

    assert order(0) == order(7)


def test_a_stream_has_no_order() -> None:
    stream: Any = Stream()
    (batch,) = DataLoader(stream, batch_size=9, sampler=DistributedSampler(stream, shuffle=False))
    assert batch.tolist() == [*range(9)]
    with pytest.raises(ValueError, match="Stream is a stream"):
        DistributedSampler(stream)


def test_a_loader_of_torch_loads_whole_batches() -> None:
    assert run(2, batches, "shuffled", True, torch.utils.data.DataLoader) == [batches("shuffled", False)] * 2
