"""The gradients of a batch normalisation over ranks that can be differentiated again, as for a gradient penalty."""

from __future__ import annotations

import torch
from torch import Tensor

from ..sharding.collectives import sum_over_ranks


def gradients_of_sums(
    input: Tensor, weight: Tensor | None, bias: Tensor | None, eps: float, gradient: Tensor
) -> tuple[Tensor | None, Tensor | None, Tensor | None]:
    """Those of the input, the weight and the bias, by way of sums over ranks; None of what needs none; collectives.

    Args:
        input: (rows, channels, ...), of this rank. gradient: that of what the normalisation gave, of the same shape.
    """
    given = (input, weight, bias)
    wanted = [each for each in given if each is not None and each.requires_grad]
    wide = input.float() if input.dtype in (torch.half, torch.bfloat16) else input
    values = wide.new_full((1,), input.numel() / input.size(1))
    sums = sum_over_ranks(torch.cat([wide.sum(other_dims(input)), values]))
    total = sums[-1].detach()
    centred = wide - per_channel(sums[:-1] / total, input)
    variance = sum_over_ranks(centred.square().sum(other_dims(input))) / total
    result = centred * per_channel(torch.rsqrt(variance + eps), input)
    result = result if weight is None else result * per_channel(weight, input)
    result = result if bias is None else result + per_channel(bias, input)
    found = iter(torch.autograd.grad(result, wanted, gradient.to(result.dtype), create_graph=True))
    of_input, of_weight, of_bias = (next(found) if each is not None and each.requires_grad else None for each in given)
    return of_input, of_weight, of_bias


def other_dims(input: Tensor) -> list[int]:
    """All dimensions but that of the channels."""
    return [dim for dim in range(input.dim()) if dim != 1]


def per_channel(values: Tensor, input: Tensor) -> Tensor:
    """A number for each channel, as it is broadcast over the input."""
    return values.view([1, -1] + [1] * (input.dim() - 2))
