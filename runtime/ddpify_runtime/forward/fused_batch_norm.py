"""Batch normalisation over ranks by the kernels that accelerators have for it, without waiting for the device.

torch's SyncBatchNorm runs the same kernels, and leaves out ranks that have no values: a mask that the host has to read,
three times in each layer and step (https://github.com/pytorch/pytorch/issues/78656). Here every rank has some.
"""

from __future__ import annotations

from typing import Any

import torch
from torch import Tensor
from torch.autograd import Function

from ..sharding.collectives import add_over_ranks, gather_in_one, once, world_size
from .batch_norm_gradients import gradients_of_sums


class Normalise(Function):
    """Rows to rows that are normalised by the statistics of all ranks, to which the running ones move."""

    @staticmethod
    def forward(
        ctx: Any,
        input: Tensor,
        weight: Tensor | None,
        bias: Tensor | None,
        running_mean: Tensor | None,
        running_var: Tensor | None,
        momentum: float,
        eps: float,
    ) -> Tensor:
        channels, in_order = input.size(1), _contiguous(input)
        mean, scale = torch.batch_norm_stats(in_order, eps)
        values = mean.new_full((1,), input.numel() // channels)
        whole = gather_in_one(torch.cat([mean, scale, values]))[: world_size()]
        means, scales, counts = whole.split([channels, channels, 1], 1)
        counts = counts.flatten()
        counts = counts if running_mean is None else counts.to(running_mean.dtype)
        mean, scale = torch.batch_norm_gather_stats_with_counts(
            in_order, means, scales, running_mean, running_var, momentum, eps, counts
        )
        ctx.eps = eps
        ctx.save_for_backward(input, weight, bias, mean, scale, counts.to(torch.int32))
        return torch.batch_norm_elemt(in_order, weight, bias, mean, scale, eps)

    @staticmethod
    def backward(ctx: Any, *gradients: Tensor) -> tuple[Tensor | None, ...]:
        input, weight, bias, mean, scale, counts = ctx.saved_tensors
        if torch.is_grad_enabled():  # its own gradient is wanted, as that of a gradient penalty
            return *gradients_of_sums(input, weight, bias, ctx.eps, gradients[0]), None, None, None, None
        input, gradient = _contiguous(input), _contiguous(gradients[0])
        of_sum, of_product, of_weight, of_bias = torch.batch_norm_backward_reduce(
            gradient, input, mean, scale, weight, True, weight is not None, bias is not None
        )
        both = torch.cat([of_sum, of_product])
        add_over_ranks(once(both))
        of_sum, of_product = both.chunk(2)
        of_input = torch.batch_norm_backward_elemt(gradient, input, mean, scale, weight, of_sum, of_product, counts)
        affine = None if weight is None else of_weight, None if bias is None else of_bias
        return of_input, *affine, None, None, None, None


def _contiguous(tensor: Tensor) -> Tensor:
    """As the kernels take it: its rows or its channels last."""
    last = {4: torch.channels_last, 5: torch.channels_last_3d}.get(tensor.dim())
    in_order = last is not None and tensor.is_contiguous(memory_format=last)
    return tensor if in_order else tensor.contiguous()
