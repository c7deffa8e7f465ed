"""Decisions of a forward by all of its samples: `if mask.all():`, `x[:, : lengths.max()]`.

They are taken by what holds for the whole batch, which every rank learns when it asks; the script reads a number there
anyway. So it is for `all` and `any` over everything, and for the largest and smallest of integers; they have no
gradient, and are the same to the bit however the samples lie. `mask.sum() == mask.numel()` is another word for `all`.
"""

from __future__ import annotations

import sys
from collections.abc import Callable, Sequence
from typing import Any

import torch
import torch.distributed as dist
from torch import Tensor
from torch.overrides import TorchFunctionMode

from .losses import UnknownLoss
from .region import Region

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

    def __torch_function__(
        self, func: Callable[..., Any], types: Sequence[type], args: tuple[Any, ...] = (), kwargs: Any = None
    ) -> Any:
        kwargs = kwargs or {}
        if not decides(func, args, kwargs):
            result = func(*args, **kwargs)
            if func in _SUMS and len(args) == 1 and not kwargs and not args[0].is_floating_point():
                result._ddpify_summed = args[0]
            return result
        if self.region.mode == "record":
            self.region.decisions.append(func(*args, **kwargs))
            return self.region.decisions[-1]
        if self.region.mode == "share":
            return _all_counted(args[0]._ddpify_summed) if func in _EQUAL else _over_ranks(func, args[0])
        if not torch.is_grad_enabled() or torch._C._autograd._top_saved_tensors_default_hooks(False) is not None:
            raise UnknownLoss("it decides by its samples in what is checkpointed, which is computed again by itself")
        if not self.region.decisions:
            raise UnknownLoss("it decides more often for a part of the batch")
        return self.region.decisions.pop(0)


def decides(func: Callable[..., Any], args: tuple[Any, ...], kwargs: dict[str, Any]) -> bool:
    """Whether a call gives a number that is that of the whole batch here; not where torch checks its arguments."""
    if func in _EQUAL and len(args) == 2 and not kwargs and isinstance(args[1], int):
        summed = getattr(args[0], "_ddpify_summed", None)
        return summed is not None and summed.numel() == args[1]
    if func not in _EXTREMES or len(args) != 1 or kwargs or not isinstance(args[0], Tensor):
        return False
    if func not in _OF_ANY_KIND and (args[0].is_floating_point() or args[0].is_complex()):
        return False
    frame = sys._getframe(1)
    while frame.f_back is not None and frame.f_globals.get("__name__", "").startswith("ddpify_runtime."):
        frame = frame.f_back
    return not frame.f_globals.get("__name__", "").startswith("torch.")


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
    return (total == count).to(samples.device)


def _reduced(numbers: Tensor, how: Any) -> Tensor:
    numbers = numbers.cpu() if numbers.device.type == "xla" else numbers  # what decides is read at once
    dist.all_reduce(numbers, how)
    return numbers
