"""Gives a script in one process, step by step, the union of the batches that the ranks of another run drew, and lets it
evaluate in the order of the data set what these do."""

from __future__ import annotations

import functools
import itertools
import json
import os
import sys
import weakref
from collections.abc import Callable, Iterator, Sequence
from pathlib import Path
from typing import Any

from torch.utils.data import BatchSampler, DataLoader, Dataset, RandomSampler, SequentialSampler, SubsetRandomSampler
from torch.utils.data.distributed import DistributedSampler

# What the plain style makes evaluations of the samples of training by (DDP620); on every rank all, by the latter.
AGAIN = ("each_sample_once", "every_sample")


class Numbers:
    """Numbers loaders in the order in which they are made; `drawn` gives those of batches that a rank drew."""

    def __init__(self) -> None:
        self.made = 0
        self.passes: dict[int, int] = {}

    def watch(self) -> None:
        """Number the loaders that are made from now on."""
        init = DataLoader.__init__

        @functools.wraps(init)
        def numbered(loader: Any, *args: Any, **kwargs: Any) -> None:
            init(loader, *args, **kwargs)
            maker = sys._getframe(1)
            of = maker.f_locals.get("loader") if maker.f_code.co_name in AGAIN else None
            if of is not None:  # a pass more over the loader of training, in the eyes of the original
                loader._ddpify_number, loader._ddpify_again = of._ddpify_number, of
                return
            loader._ddpify_number = self.made
            loader._ddpify_place = f"{maker.f_code.co_filename}:{maker.f_lineno}"
            self.made += 1

        DataLoader.__init__ = numbered  # type: ignore[method-assign, assignment]

    def begins(self, loader: Any) -> int:
        """The number of a pass that begins, among those of its loader."""
        number = getattr(loader, "_ddpify_number", -1)
        self.passes[number] = self.passes.get(number, -1) + 1
        return self.passes[number]


def is_divided(loader: Any) -> bool:
    """Whether a loader draws a rank's part of a training set, be it for an evaluation."""
    if hasattr(loader, "_ddpify_again"):
        return True
    sampler = loader.sampler if loader.batch_sampler is None else getattr(loader.batch_sampler, "sampler", None)
    return isinstance(sampler, DistributedSampler)


def goes_in_order(loader: Any) -> bool:
    """Whether a loader draws nothing: all samples one after the other, or a part of them that is written down."""
    return isinstance(getattr(loader.batch_sampler, "sampler", None), SequentialSampler | range | list)


def shuffles(loader: Any) -> bool:
    """Whether a loader of training has another order in each epoch, as far as it is told the epoch."""
    sampler = loader.sampler if loader.batch_sampler is None else getattr(loader.batch_sampler, "sampler", None)
    return isinstance(sampler, DistributedSampler) and sampler.shuffle


def origin(loader: Any) -> str:
    """Where a loader was made, and of which data set: another of the same is one for another epoch."""
    return f"{getattr(loader, '_ddpify_place', '')} {_number(loader.dataset)}"


def _number(dataset: Any) -> int:
    """The number of a data set; an id may be that of one that is gone, of the fold before."""
    number, known = _datasets.get(id(dataset), (0, None))
    if known is None or known() is not dataset:
        try:
            known = weakref.ref(dataset)
        except TypeError:  # a list, which is kept
            known = functools.partial(_same, dataset)
        number = next(_numbers)
        _datasets[id(dataset)] = number, known
    return number


def _same(dataset: Any) -> Any:
    return dataset


_numbers = itertools.count()
_datasets: dict[int, tuple[int, Callable[[], Any]]] = {}


def length(loader: Any) -> int:
    """How many batches the original's loader has for one that draws a rank's part."""
    return len(getattr(loader, "_ddpify_again", loader))


def is_repeated(loader: Any) -> bool:
    """Whether a loader draws what another rank draws as well."""
    whole = hasattr(loader, "_ddpify_again") and type(loader.sampler) is SequentialSampler
    return whole and os.environ.get("RANK", "0") != "0"


class _Union:
    """The batches of a loader's passes, one pass after the other."""

    def __init__(self, length: int, passes: list[list[list[int]]]) -> None:
        self.length, self.passes = length, iter(passes)
        self.indices: Sequence[int] | None = None  # of the samples of a subset, whose places were drawn

    def __len__(self) -> int:
        return self.length

    def __iter__(self) -> Iterator[list[int]]:
        found = next(self.passes, None)  # not before: a loader with workers makes an iterator too many
        if found is None:
            raise RuntimeError("the original makes more passes over a loader than the ranks did")
        yield from found if self.indices is None else ([self.indices[place] for place in batch] for batch in found)


def give(file: Path) -> None:
    """Let loaders draw what a file says.

    Args:
        file: for the number of a loader, how many batches it says it has, and the indices of those of each pass; and
            the numbers of those that do not shuffle.
    """
    read = json.loads(file.read_text())
    given = {int(number): _Union(*values) for number, values in read["drawn"].items()}
    in_order = frozenset(read["in_order"])
    own = DataLoader._index_sampler.fget  # type: ignore[attr-defined]

    def index_sampler(loader: DataLoader[Dataset[Any]]) -> Any:
        number = getattr(loader, "_ddpify_number", -1)
        if number in in_order and _shuffles(loader.sampler) and loader.batch_size is not None:
            return BatchSampler(SequentialSampler(loader.dataset), loader.batch_size, loader.drop_last)  # type: ignore[arg-type]
        if number not in given:
            return own(loader)
        if isinstance(loader.sampler, SubsetRandomSampler):  # the plain style makes a Subset of it (DDP636)
            given[number].indices = loader.sampler.indices
        return given[number]

    DataLoader._index_sampler = property(index_sampler)  # type: ignore[assignment]


def _shuffles(sampler: object) -> bool:
    """Whether a sampler draws each sample once, in any order: what goes in order instead draws the same samples."""
    if type(sampler) is not RandomSampler:
        return False
    return not sampler.replacement and sampler.num_samples == len(sampler.data_source)


def is_given(loader: Any) -> bool:
    """Whether a loader draws what a file says."""
    return isinstance(loader._index_sampler, _Union)
