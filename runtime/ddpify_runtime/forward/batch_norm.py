"""Batch normalisation over the whole batch while each rank holds its share of it (HAZARDS M8, M9).

The module stays the one that the user made; only its call is routed. It communicates as torch's SyncBatchNorm does, one
collective forward and one backward: on accelerators by their kernels (`fused_batch_norm`), elsewhere by `_Normalise`.
"""

from __future__ import annotations

import inspect
import weakref
from collections.abc import Callable, Sequence
from functools import lru_cache
from typing import Any

import torch
import torch.distributed as dist
import torch.nn.functional as F
from torch import Tensor, nn
from torch.autograd import Function
from torch.overrides import TorchFunctionMode

from .. import accelerators, engines
from ..sharding.collectives import add_over_ranks, gather_parts, once, world_size
from ..torch_internals import CALL, BatchNorm, call_past_slot, check_dims
from . import fused_batch_norm, region
from .batch_norm_gradients import gradients_of_sums, other_dims, per_channel


class BatchNormCall:
    """Stands in front of one batch normalisation module's call.

    local: it normalises with the statistics of this rank's rows, as in torch's DistributedDataParallel. moved: this
    rank's running statistics have been since the ranks had the same.
    """

    def __init__(self, module: BatchNorm, local: bool = False) -> None:
        self.living = weakref.ref(module)  # which holds this
        self.local = local
        self.moved = False

    @property
    def module(self) -> BatchNorm:
        return self.living()  # type: ignore[return-value]

    def __call__(self, input: Tensor) -> Tensor:
        module, here = self.module, region.current()
        uses_batch = module.training or module.running_mean is None
        if here is not None and self.local and module.training and module.track_running_stats:
            self.moved = True
        if here is None or self.local or not uses_batch:
            return call_past_slot(module)(input)  # type: ignore[no-any-return]
        if here.mode == "record":
            here.statistics.append((*statistics(input.detach()), input.numel() // input.size(1)))
            return call_past_slot(module)(input)  # type: ignore[no-any-return]
        check_dims(module, input)
        if here.mode == "replay":
            mean, variance, _ = here.statistics.pop(0)
            return F.batch_norm(input, mean, variance, module.weight, module.bias, eps=module.eps)
        momentum = weight_of_batch(module)
        tracked = module.training and module.track_running_stats
        running = (module.running_mean, module.running_var) if tracked else (None, None)
        return _over_ranks(input, *running, module.weight, module.bias, momentum, module.eps)


class CustomBatchNormCall(BatchNormCall):
    """The same where a class has a forward of its own, which may add an activation: `F.batch_norm` in it is handled."""

    def __call__(self, *args: Any, **kwargs: Any) -> Any:
        module, here = self.module, region.current()
        if here is not None and self.local and module.training and module.track_running_stats:
            self.moved = True
        if here is None or self.local:
            return call_past_slot(module)(*args, **kwargs)
        with _OfWholeBatch(here):
            return call_past_slot(module)(*args, **kwargs)


class _OfWholeBatch(TorchFunctionMode):
    """Handles `F.batch_norm` of a batch, according to the region's mode."""

    def __init__(self, here: region.Region) -> None:
        super().__init__()
        self.here = here

    def __torch_function__(
        self, func: Callable[..., Any], types: Sequence[type], args: tuple[Any, ...] = (), kwargs: Any = None
    ) -> Any:
        kwargs = kwargs or {}
        if func is not F.batch_norm:
            return func(*args, **kwargs)
        bound = _SIGNATURE.bind(*args, **kwargs)
        bound.apply_defaults()
        input, running_mean, running_var, weight, bias, training, momentum, eps = bound.args
        if not training:
            return func(*args, **kwargs)
        if self.here.mode == "shard":
            return _over_ranks(input, running_mean, running_var, weight, bias, momentum, eps)
        if self.here.mode == "record":
            self.here.statistics.append((*statistics(input.detach()), input.numel() // input.size(1)))
        noted = self.here.statistics
        mean, variance, values = noted[-1] if self.here.mode == "record" else noted.pop(0)
        # By the same numbers for the whole and a part: a mean of nothing but rounding is the same in both.
        track(running_mean, running_var, mean, variance * (values / (values - 1)), momentum)
        return func(input, mean, variance, weight, bias, eps=eps)


_SIGNATURE = inspect.signature(F.batch_norm)


def route(module: nn.Module, local: bool = False) -> list[BatchNormCall]:
    """Route the call of every batch normalisation in a module."""
    calls = []
    for part in module.modules():
        if isinstance(part, BatchNorm) and not isinstance(part, nn.SyncBatchNorm):
            call = vars(part).get(CALL)
            if not isinstance(call, BatchNormCall) or call.local != local:
                plain = type(part).forward is BatchNorm.forward
                call = BatchNormCall(part, local) if plain else CustomBatchNormCall(part, local)
                vars(part)[CALL] = call
            calls.append(call)
    return calls


def follow_first(calls: Sequence[BatchNormCall]) -> None:
    """Give every rank the running statistics of rank 0, as torch's DistributedDataParallel does, where they have moved.

    A collective then. What every rank computes alike, such as an evaluation, would differ otherwise, and so would the
    decisions that follow from it (E5).
    """
    moved = [call for call in calls if call.moved]
    kept = [call.module.running_mean for call in moved] + [call.module.running_var for call in moved]
    # Past the version counter, as torch's own forward: a backward that comes later does not use them.
    values = [value.data for value in kept if value is not None]
    for call in moved:
        call.moved = False
    if not values:
        return
    flat = torch.cat(values)
    if engines.of(flat.device).records:  # where all ranks have to run one graph
        flat = torch.where(_is_first(dist.get_rank(), flat.device), flat, 0)
        dist.all_reduce(flat)
    else:
        dist.broadcast(flat, 0)
    for value, first in zip(values, flat.split([len(value) for value in values]), strict=True):
        value.copy_(first)


@lru_cache(maxsize=8)
def _is_first(rank: int, device: torch.device) -> Tensor:
    """Whether this is rank 0, sent to the device once."""
    return torch.tensor(rank == 0, device="cpu").to(device)


def track(
    running_mean: Tensor | None, running_var: Tensor | None, mean: Tensor, unbiased: Tensor, momentum: float
) -> None:
    """Move running statistics to those of a batch.

    Past the version counter, as torch's own forward: one that runs whole, as that of a part which the script calls by
    itself, has saved them for a backward that does not use them.
    """
    with torch.no_grad():
        if running_mean is not None and running_var is not None:
            running_mean.data.lerp_(mean.to(running_mean.dtype), momentum)
            running_var.data.lerp_(unbiased.to(running_var.dtype), momentum)


def statistics(input: Tensor) -> tuple[Tensor, Tensor]:
    wide = input.float() if input.dtype in (torch.half, torch.bfloat16) else input
    variance, mean = torch.var_mean(wide, other_dims(input), correction=0)
    return mean, variance


def weight_of_batch(module: BatchNorm) -> float:
    """As in BatchNorm.forward: counts the batch, and gives the weight of the new statistics."""
    if not module.training or not module.track_running_stats:
        return 0.0
    if module.num_batches_tracked is not None:
        module.num_batches_tracked.add_(1)
        if module.momentum is None:
            return 1.0 / float(module.num_batches_tracked)
    return module.momentum if module.momentum is not None else 0.0


def _over_ranks(
    input: Tensor,
    running_mean: Tensor | None,
    running_var: Tensor | None,
    weight: Tensor | None,
    bias: Tensor | None,
    momentum: float,
    eps: float,
) -> Tensor:
    """Normalise with the statistics of all values that the ranks hold together, per channel."""
    if accelerators.module_of(input.device.type) is not None:
        normalised: Tensor = fused_batch_norm.Normalise.apply(  # type: ignore[no-untyped-call]
            input, weight, bias, running_mean, running_var, momentum, eps
        )
        return normalised
    wide = input.float() if input.dtype in (torch.half, torch.bfloat16) else input
    normalised, mean, variance, total = _Normalise.apply(wide, weight, bias, eps)  # type: ignore[no-untyped-call]
    if running_mean is not None:
        track(running_mean, running_var, mean, variance * (total / (total - 1)), momentum)
    output: Tensor = normalised.to(input.dtype)
    return output


class _Normalise(Function):
    """Rows to normalised rows, and the mean, the biased variance and the number of the values of all ranks.

    The variances of the ranks' parts are put together with the differences of their means (Chan, Golub, LeVeque 1983),
    which loses no digits where a mean is large beside its variance.
    """

    @staticmethod
    def forward(
        ctx: Any, input: Tensor, weight: Tensor | None, bias: Tensor | None, eps: float
    ) -> tuple[Tensor, Tensor, Tensor, Tensor]:
        values = input.numel() // input.size(1)
        mean = input.mean(other_dims(input))
        spread = (input - per_channel(mean, input)).square_().sum(other_dims(input))
        sent = torch.stack([mean, spread, torch.full_like(mean, values)])
        means, spreads, counts = torch.stack(gather_parts(sent)[: world_size()]).unbind(1)
        total = counts.sum(0)[0]  # no sum over everything, which would be taken for a loss of the forward
        mean = (means * counts).sum(0) / total
        variance = (spreads + counts * (means - mean).square()).sum(0) / total
        scale = torch.rsqrt(variance + eps)
        ctx.eps = eps
        ctx.save_for_backward(input, weight, bias, mean, scale, total)
        ctx.mark_non_differentiable(mean, variance, total)
        # torch's own kernel, as one process has it: a pass over the values, where a formula takes two and their memory.
        factor, shift = (None if each is None else each.to(input.dtype) for each in (weight, bias))
        return F.batch_norm(input, mean, variance, factor, shift, eps=eps), mean, variance, total

    @staticmethod
    def backward(ctx: Any, *gradients: Tensor) -> tuple[Tensor | None, Tensor | None, Tensor | None, None]:
        input, weight, bias, mean, scale, total = ctx.saved_tensors
        gradient = gradients[0]
        if torch.is_grad_enabled():  # its own gradient is wanted, as that of a gradient penalty
            return *gradients_of_sums(input, weight, bias, ctx.eps, gradient), None
        centred = input - per_channel(mean, input)
        of_bias = gradient.sum(other_dims(input))
        of_weight = (gradient * centred).sum(other_dims(input)) * scale
        both = torch.stack([of_bias, of_weight])
        add_over_ranks(once(both))
        mean_gradient, mean_product = both / total
        factor = scale if weight is None else scale * weight
        of_input = (gradient - per_channel(mean_gradient, input)).addcmul_(
            centred, per_channel(-mean_product * scale, input)
        )
        of_input *= per_channel(factor, input)
        return of_input, None if weight is None else of_weight, None if bias is None else of_bias, None
