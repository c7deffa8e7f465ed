"""Decisions of a forward by all of its samples: `if mask.all():`, `x[:, : lengths.max()]`.

They are taken by what holds for the whole batch, which every rank learns when it asks; the script reads a number there
anyway. So it is for `all` and `any` over everything, and for the largest and smallest of integers; they have no
gradient, and are the same to the bit however the samples lie. `mask.sum() == mask.numel()` is another word for `all`,
and `0 in ids` for `any`. `pad_packed_sequence` pads to the longest of the whole batch: what follows, such as the
largest over time, may see how much was padded.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from types import FrameType
from typing import Any

import torch
import torch.distributed as dist
from torch import Tensor
from torch.overrides import TorchFunctionMode

from .. import engines
from ..sharding.collectives import add_over_ranks, extreme_over_ranks, once
from ..torch_internals import PADS_PACKED, saved_tensor_hooks
from .callers import caller
from .losses import UnknownLoss
from .region import Region
from .row_numbers import RowNumbers

_EXTREMES = {
    **dict.fromkeys((torch.all, Tensor.all, torch.min, Tensor.min, torch.amin, Tensor.amin), dist.ReduceOp.MIN),
    **dict.fromkeys((torch.any, Tensor.any, torch.max, Tensor.max, torch.amax, Tensor.amax), dist.ReduceOp.MAX),
}
_SUMS = {torch.sum, Tensor.sum}
_EQUAL = {torch.eq, Tensor.eq, Tensor.__eq__}
_OF_ANY_KIND = {torch.all, Tensor.all, torch.any, Tensor.any}


class Decisions(TorchFunctionMode):
    """Handles every such reduction inside a region, according to its mode."""

    def __init__(self, region: Region) -> None:
        super().__init__()
        self.region = region
        self.row_numbers = RowNumbers(region.row_numbers)

    def __torch_function__(
        self, func: Callable[..., Any], types: Sequence[type], args: tuple[Any, ...] = (), kwargs: Any = None
    ) -> Any:
        kwargs = kwargs or {}
        if getattr(func, "__name__", "") == PADS_PACKED:
            *given, longest = args
            return func(*given, int(self._decided(torch.max, (torch.tensor(longest, device="cpu"),))))
        if self.row_numbers:
            if self.row_numbers.largest(func, args, kwargs):
                return func(*args)
            return self.row_numbers.follow(func, args, self._handled(func, args, kwargs))
        return self._handled(func, args, kwargs)

    def _handled(self, func: Callable[..., Any], args: tuple[Any, ...], kwargs: dict[str, Any]) -> Any:
        counts = func in _SUMS and len(args) == 1 and not kwargs and not _has_fractions(args[0])
        if not counts and not decides(func, args, kwargs):
            return func(*args, **kwargs)
        if not counts:
            return self._decided(func, args)
        result = self._counted(func, args[0])
        result._ddpify_summed = args[0]  # type: ignore[attr-defined]
        return result

    def _decided(self, func: Callable[..., Any], args: tuple[Any, ...]) -> Any:
        if func is Tensor.__contains__:
            return bool(self._decided(torch.any, (_plain(torch.eq, *args),)))
        if self.region.mode == "shard":
            return _all_counted(args[0]._ddpify_summed) if func in _EQUAL else _over_ranks(func, args[0])
        return self._noted(func, *args)

    def _counted(self, func: Callable[..., Any], samples: Tensor) -> Tensor:
        """A sum of integers. How many there are may depend on decisions, so they are known by their line."""
        frame = caller()
        place = frame.f_code.co_filename, frame.f_lineno, samples.dim()
        if self.region.mode == "shard":
            if place not in self.region.counts:
                raise UnknownLoss("it counts something that it did not when it was first divided")
            result = _plain(func, samples)
            return _reduced(result.clone(), dist.ReduceOp.SUM).to(result) if self.region.counts[place] else result
        result = self._noted(func, samples)
        if self.region.mode == "replay":
            over_samples = samples.shape != self.whole_shape or not samples.numel()
            if self.region.counts.setdefault(place, over_samples) != over_samples:
                raise UnknownLoss("it counts in more than one way")
        return result

    def _noted(self, func: Callable[..., Any], *args: Any) -> Tensor:
        """What the whole batch gives."""
        if self.region.mode == "record":
            result = _plain(func, *args)
            self.region.decisions.append((args[0].shape, result.clone()))
            return result
        if not torch.is_grad_enabled() or saved_tensor_hooks() is not None:
            raise UnknownLoss("it decides by its samples in what is checkpointed, which is computed again by itself")
        if not self.region.decisions:
            raise UnknownLoss("it decides more often for a part of the batch")
        self.whole_shape, result = self.region.decisions.pop(0)
        return result.clone()


def decides(func: Callable[..., Any], args: tuple[Any, ...], kwargs: dict[str, Any]) -> bool:
    """Whether a call gives a number that is that of the whole batch here; not where torch checks its arguments."""
    if func in _EQUAL and len(args) == 2 and not kwargs and isinstance(args[1], int):
        summed = getattr(args[0], "_ddpify_summed", None)
        return summed is not None and bool(summed.numel() == args[1])
    if func is Tensor.__contains__:
        return isinstance(args[1], (bool, int, float)) and not _is_of_torch(caller())
    if func not in _EXTREMES or len(args) != 1 or kwargs or not isinstance(args[0], Tensor):
        return False
    if func not in _OF_ANY_KIND and _has_fractions(args[0]):
        return False
    return not _is_of_torch(caller())


def _plain(func: Callable[..., Any], *args: Any) -> Tensor:
    """What torch gives; it is no loss, although a sum may be one."""
    with torch.DisableTorchFunction():
        result: Tensor = func(*args)
    return result


def _is_of_torch(frame: FrameType) -> bool:
    return str(frame.f_globals.get("__name__", "")).startswith("torch.")


def _has_fractions(tensor: Any) -> bool:
    return not isinstance(tensor, Tensor) or tensor.is_floating_point() or tensor.is_complex()


def _over_ranks(func: Callable[..., Any], samples: Tensor) -> Tensor:
    """Of the samples of all ranks; a collective."""
    if func in _OF_ANY_KIND or samples.numel():
        result = func(samples)
        extreme = result.long()
    else:  # a selection of which this rank has none
        result, limits = samples, torch.iinfo(torch.int64)
        neutral = limits.max if _EXTREMES[func] == dist.ReduceOp.MIN else limits.min
        extreme = torch.tensor(neutral, device=samples.device)
    whole: Tensor = _reduced(extreme, _EXTREMES[func]).to(result)
    return whole


def _all_counted(samples: Tensor) -> Tensor:
    """Whether the sum over all ranks is the number of summands; a collective."""
    summands = torch.tensor(samples.numel(), device=samples.device)
    total, count = _reduced(torch.stack([samples.sum(dtype=torch.int64), summands]), dist.ReduceOp.SUM)
    whole: Tensor = (total == count).to(samples.device)
    return whole


def _reduced(numbers: Tensor, how: Any) -> Tensor:
    numbers = numbers.cpu() if engines.of(numbers.device).records else numbers  # what decides is read at once
    if how == dist.ReduceOp.SUM:
        add_over_ranks(once(numbers))
    else:
        extreme_over_ranks(numbers, how)
    return numbers
