"""What names, where a loader is made, the order of which every rank takes its rows.

A sampler knows nothing of batches, so the DataLoader of this package takes the rows: `[rank::world_size]` of each
global batch. Its sampler therefore gives the order of the whole on every rank, the very one that torch's DataLoader
draws in one process (HAZARDS D1, D6, D9, D17): `batch_size` and every length are those of all ranks together. torch's
own DistributedSampler draws another order, and repeats samples where they do not divide.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence, Sized
from typing import TypeVar

import torch
from torch.utils.data import BatchSampler, IterableDataset, RandomSampler, Sampler, SequentialSampler

from .process_group import get_rank, get_world_size

AnySampler = TypeVar("AnySampler", bound="Iterable[object] | None")


class Shuffled(RandomSampler):
    """torch's RandomSampler, with the `set_epoch` that a reader of distributed code looks for.

    generator: that of the loader, or none, for the common random numbers. A seed other than 0: the order of torch's
    DistributedSampler for `seed + epoch`, whatever was drawn before.
    """

    def __init__(self, dataset: Sized, seed: int) -> None:
        super().__init__(dataset)
        self.seed, self.epoch = seed, 0

    def set_epoch(self, epoch: int) -> None:
        """Tell the epoch, which counts where a seed was given; else each pass draws another order by itself."""
        self.epoch = epoch

    def __iter__(self) -> Iterator[int]:
        if self.seed:
            self.generator = torch.Generator()
            self.generator.manual_seed(self.seed + self.epoch)
        return super().__iter__()


class InOrder(SequentialSampler):
    """torch's SequentialSampler, with `set_epoch`."""

    def set_epoch(self, epoch: int) -> None:
        """Nothing depends on it."""


def batches(batch_sampler: Iterable[Sequence[int]]) -> Iterator[Sequence[int]]:
    """What a batch sampler gives; where it is torch's, of an order that is known at once, not index by index."""
    order = _order(batch_sampler.sampler) if type(batch_sampler) is BatchSampler else None
    if order is None:
        yield from batch_sampler
        return
    assert isinstance(batch_sampler, BatchSampler)
    size, end = batch_sampler.batch_size, len(order)
    for first in range(0, end - end % size if batch_sampler.drop_last else end, size):
        yield order[first : first + size]


def _order(sampler: object) -> Sequence[int] | None:
    """All indices of a pass; None where they are not known at once, or drawn from a generator of the script's."""
    if isinstance(sampler, SequentialSampler) and type(sampler) in (InOrder, SequentialSampler):
        return range(len(sampler))
    if not isinstance(sampler, RandomSampler) or type(sampler) not in (Shuffled, RandomSampler):
        return None
    size = len(sampler.data_source)
    seeded = isinstance(sampler, Shuffled) and sampler.seed
    if sampler.generator is not None or sampler.replacement or sampler.num_samples != size or seeded:
        return None
    generator = torch.Generator()
    generator.manual_seed(int(torch.empty((), dtype=torch.int64).random_()))
    order: list[int] = torch.randperm(size, generator=generator).tolist()
    return order


def DistributedSampler(  # noqa: N802  the name that readers know
    dataset: Sized,
    num_replicas: int | None = None,
    rank: int | None = None,
    shuffle: bool = True,
    seed: int = 0,
    drop_last: bool = False,
) -> Sampler[int] | None:
    """The order in which one process loads a data set, for a DataLoader of this package, which divides its batches.

    Args:
        dataset: with a length. num_replicas, rank: of this process; there is no need to give them.
        shuffle: whether the order is a random one. seed: 0: drawn from the common random numbers, or from the loader's
            generator, as in one process. Another one: torch's order for `seed + epoch`.
        drop_last: must stay False: nothing has to go for the batches to divide; the loader's `drop_last` is another.

    Returns:
        A sampler as long as the data set, on every rank; None for an IterableDataset, which has no order.

    Raises:
        ValueError: it is asked for another part than this process's, to leave out samples, or to shuffle a stream.
    """
    if num_replicas not in (None, get_world_size()) or rank not in (None, get_rank()):
        raise ValueError(
            f"num_replicas={num_replicas}, rank={rank} is not this process, rank {get_rank()} of {get_world_size()}: "
            "leave both out, the DataLoader of ddpify_runtime takes this process's rows of each batch"
        )
    if drop_last:
        raise ValueError(
            "DistributedSampler(drop_last=True): batches are divided as they are, nothing has to be left out for it; "
            "give drop_last to the DataLoader if the last batch shall go"
        )
    if isinstance(dataset, IterableDataset):
        if shuffle:
            raise ValueError(f"{type(dataset).__name__} is a stream, which no sampler shuffles: leave it to the loader")
        return None
    return Shuffled(dataset, seed) if shuffle else InOrder(dataset)


def DistributedSamplerWrapper(sampler: AnySampler) -> AnySampler:  # noqa: N802  as in Catalyst and Lightning
    """A sampler of the script's own, of whose order every rank takes its rows; returns the same sampler.

    It has another name because torch's DistributedSampler, given a sampler, shuffles the numbers below its length and
    never asks it.

    Args:
        sampler: all that a DataLoader takes as one; it is drawn from on every rank, with the common random numbers.
    """
    return sampler
