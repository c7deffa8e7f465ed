"""What of torch.utils.data is wrapped to see which samples a script draws."""

from __future__ import annotations

import contextlib
import functools
import zlib
from collections.abc import Sequence
from typing import Any

import torch
from torch.utils._pytree import tree_leaves
from torch.utils.data import Subset
from torch.utils.data.dataloader import _BaseDataLoaderIter as Pass

from ddpify_recorder import unions
from ddpify_recorder.recorder import Recorder
from ddpify_recorder.traces import digests


def watch(recorder: Recorder) -> None:
    """Tell a recorder of every pass over a loader, and of the samples of every batch."""
    init, reset, next_index, next_batch = Pass.__init__, Pass._reset, Pass._next_index, Pass.__next__
    numbers = unions.Numbers()
    numbers.watch()

    def number(self: Any, loader: Any) -> None:
        recorder.passes += 1
        self._ddpify_pass = recorder.passes
        self._ddpify_drawn = None
        if unions.is_divided(loader):
            self._ddpify_drawn = getattr(loader, "_ddpify_number", -1), numbers.begins(loader)
            origin = unions.origin(loader) if unions.shuffles(loader) else ""
            recorder.write("divided", (*self._ddpify_drawn, unions.length(loader), origin))
            self._ddpify_drawn = None if unions.is_repeated(loader) else self._ddpify_drawn
        elif unions.goes_in_order(loader):
            recorder.write("in order", getattr(loader, "_ddpify_number", -1))
        recorder.write("pass", _pass(recorder.passes, loader))

    @functools.wraps(init)
    def recorded_init(self: Any, loader: Any, *args: Any, **kwargs: Any) -> None:
        number(self, loader)
        init(self, loader, *args, **kwargs)

    @functools.wraps(reset)
    def recorded_reset(self: Any, loader: Any, first_iter: bool = False) -> None:
        if not first_iter:
            number(self, loader)
        reset(self, loader, first_iter)

    @functools.wraps(next_index)
    def recorded_index(self: Any) -> Any:
        index = next_index(self)  # type: ignore[no-untyped-call]
        drawn = index if isinstance(index, list | tuple) else [index]
        if _is_runtime_s(self._index_sampler) and drawn and isinstance(drawn[0], list):
            drawn = drawn[0]  # to a worker
        if all(isinstance(place, int) for place in drawn):
            recorder.write("batch", (self._ddpify_pass, _in_full_set(_own(self._dataset), drawn)))
            if self._ddpify_drawn is not None:
                recorder.write("drawn", (*self._ddpify_drawn, list(drawn)))
        return index

    @functools.wraps(next_batch)
    def recorded_batch(self: Any) -> Any:
        batch = next_batch(self)
        if self._dataset_kind == 1 and (rows := _rows(batch)):  # a stream: nothing but the content names a sample
            recorder.write("batch", (self._ddpify_pass, rows))
        return batch

    Pass.__init__, Pass._reset = recorded_init, recorded_reset  # type: ignore[method-assign]
    Pass._next_index, Pass.__next__ = recorded_index, recorded_batch  # type: ignore[method-assign]


def _own(dataset: Any) -> Any:
    """The script's data set, which the runtime's loader stands before."""
    return dataset.dataset if _is_runtime_s(dataset) else dataset


def _is_runtime_s(value: Any) -> bool:
    return type(value).__module__.startswith("ddpify_runtime.")


def _in_full_set(dataset: Any, places: Sequence[int]) -> tuple[int, ...]:
    """The indices in the set that a Subset, of a random split as a rule, is a part of."""
    while isinstance(dataset, Subset):
        places, dataset = [int(dataset.indices[place]) for place in places], dataset.dataset
    return tuple(places)


def _pass(number: int, loader: Any) -> dict[str, Any]:
    """What a pass is of: the loader's classes and lengths, and which part of a set it draws from."""
    loader = getattr(loader.batch_sampler, "loader", loader) if _is_runtime_s(loader.batch_sampler) else loader
    sampler, dataset = loader.sampler if loader.batch_sampler is None else loader.batch_sampler, _own(loader.dataset)
    part = zlib.crc32(repr([*map(int, dataset.indices)]).encode()) if isinstance(dataset, Subset) else 0
    length = None
    with contextlib.suppress(TypeError, NotImplementedError):
        length = len(dataset)
    return {
        "number": number,
        "batch_sampler": type(sampler).__name__,
        "sampler": type(getattr(sampler, "sampler", sampler)).__name__,
        "length": length,
        "part": part,
        "stream": loader._dataset_kind == 1,
        "workers": loader.num_workers,
    }


def _rows(batch: Any) -> tuple[int, ...]:
    first = next((leaf for leaf in tree_leaves(batch) if isinstance(leaf, torch.Tensor) and leaf.dim()), None)
    return () if first is None else digests(first, 0)
