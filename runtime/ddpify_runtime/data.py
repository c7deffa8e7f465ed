"""DataLoader: torch's own, of which every rank loads its rows only, where that cannot be noticed.

Every rank draws the same global batches. Loading a part of one is exact when a sample does not depend on what was
loaded before it, so the first batch is loaded whole, watching the random number generators. A dataset that draws
(random augmentation), a collate function of one's own (it may pad to the longest sample) or batches of anything but
tensors are loaded whole on every rank: exact too, but not faster (HAZARDS D9, S3, section 0.3).
"""

from __future__ import annotations

import sys
import zlib
from collections import deque
from collections.abc import Callable, Iterator
from typing import Any, TypeVar

import torch
import torch.distributed as dist
from torch import Tensor
from torch.utils._pytree import tree_flatten, tree_map
from torch.utils.data import BatchSampler, IterableDataset, Sampler, SequentialSampler, default_collate
from torch.utils.data import DataLoader as TorchDataLoader

from . import check, random_states, region
from .batch import Share
from .collectives import spread
from .process_group import get_world_size

T_co = TypeVar("T_co", covariant=True)


class DataLoader(TorchDataLoader[T_co]):
    """torch.utils.data.DataLoader: same arguments, same batches, same length."""

    _whole = False  # learnt: every rank has to load everything
    _proven = False  # learnt: a rank may load its part alone
    _inner: TorchDataLoader[Any] | None = None

    def __iter__(self) -> Any:
        batches = self._batches()
        if "torch_xla" not in sys.modules:
            return batches
        from .xla.steps import Steps

        return Steps(batches)

    def _batches(self) -> Any:
        if not self._may_share():
            return super().__iter__()
        if self._inner is None or not self.persistent_workers:
            self._inner = TorchDataLoader(
                self.dataset,
                batch_sampler=_Shares(self),
                collate_fn=_Watch(self.num_workers > 0),
                worker_init_fn=_WatchFromStart(self.worker_init_fn),
                **{name: getattr(self, name) for name in _FORWARDED},
            )
        _require_equal_states()
        sampler = self._inner.batch_sampler
        assert isinstance(sampler, _Shares)
        sampler.totals.clear()
        return _Batches(self, iter(self._inner), sampler)

    def _may_share(self) -> bool:
        return (
            get_world_size() > 1
            and not self._whole
            and torch.is_grad_enabled()  # an evaluation loader would only be joined again
            and self.batch_sampler is not None
            and not (type(self.batch_sampler) is BatchSampler and isinstance(self.sampler, SequentialSampler))
            and self.collate_fn is default_collate
            and not isinstance(self.dataset, IterableDataset)
            and not random_states.has_generator(self.dataset)
        )


_FORWARDED = (
    "num_workers",
    "pin_memory",
    "timeout",
    "multiprocessing_context",
    "generator",
    "prefetch_factor",
    "persistent_workers",
    "pin_memory_device",
)


class _Shares(Sampler[list[int]]):
    """This rank's part of each batch of a loader's batch sampler; `totals`: the whole sizes, 0 for one left whole."""

    def __init__(self, loader: DataLoader[Any]) -> None:
        self.loader = loader
        self.totals: deque[int] = deque()

    def __len__(self) -> int:
        return len(self.loader)

    def __iter__(self) -> Iterator[list[int]]:
        for batch in self.loader.batch_sampler:  # type: ignore[union-attr]
            shared = self.loader._proven and len(batch) >= dist.get_world_size()
            self.totals.append(len(batch) if shared else 0)
            _remember()
            check.draw(list(batch))
            yield list(batch)[dist.get_rank() :: dist.get_world_size()] if shared else batch


class _Batches:
    """The batches of one pass."""

    def __init__(self, loader: DataLoader[Any], batches: Iterator[Any], sampler: _Shares) -> None:
        self.loader, self.batches, self.sampler = loader, batches, sampler

    def __iter__(self) -> _Batches:
        return self

    def __len__(self) -> int:
        return len(self.loader)

    def __next__(self) -> Any:
        with region.on_samples():
            batch, size, drew = next(self.batches)
        total = self.sampler.totals.popleft()
        if total and drew:
            raise RuntimeError(
                "ddpify: the dataset began to draw random numbers after its first batches, which were loaded in parts; "
                "import DataLoader from torch.utils.data instead of ddpify_runtime"
            )
        if total:
            return tree_map(lambda rows: Share(rows, total), batch)
        leaves = tree_flatten(batch)[0]
        if drew or not all(isinstance(leaf, Tensor) and leaf.dim() and len(leaf) == size for leaf in leaves):
            self.loader._whole = True
        self.loader._proven = not self.loader._whole
        return batch


class _Watch:
    """Collates as by default; tells the number of samples, and whether loading them drew random numbers."""

    def __init__(self, in_worker: bool) -> None:
        self.in_worker = in_worker

    def __call__(self, samples: list[Any]) -> tuple[Any, int, bool]:
        drew = random_states.key() != _before
        batch = default_collate(samples)
        if self.in_worker:
            _remember()
        return batch, len(samples), drew


class _WatchFromStart:
    """Runs the user's worker_init_fn, then starts to watch."""

    def __init__(self, function: Callable[[int], None] | None) -> None:
        self.function = function

    def __call__(self, worker: int) -> None:
        if self.function is not None:
            self.function(worker)
        _remember()


_before: Any = None


def _remember() -> None:
    global _before
    _before = random_states.key()


def _require_equal_states() -> None:
    if spread(torch.tensor([zlib.crc32(random_states.key()[0])])).any():
        raise RuntimeError(
            "ddpify: the processes' random numbers went apart before this pass over a loader, so they would draw "
            "different batches: a seed of the clock or the system, a search that draws its own settings on each "
            "process, or something that drew random numbers on some ranks only"
        )
