"""Tensors that a divided forward is given whole, and which have a gradient: weights of an inner step, learnt prompts.

Each rank has a part of their gradient, and their gradient before the forward is the sum of these: a collective in the
backward. A rank's rows may make no use of some, as of an expert that none of them chose; still every rank has to come
to that collective. So the outputs lead to it too.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

import torch
from torch import Tensor
from torch.autograd import Function

from ..torch_internals import apply
from .collectives import sum_over_ranks, world_size


class GivenWhole(Function):
    """Values that are the same on every rank enter the shared region; beside them a number that leads back here."""

    @staticmethod
    def forward(ctx: Any, on_enter: Callable[[], None], *values: Tensor) -> tuple[Tensor, ...]:
        ctx.on_enter = on_enter
        ctx.empty = [torch.empty(value.shape, dtype=value.dtype, device="meta") for value in values]
        ctx.device = values[0].device
        ctx.set_materialize_grads(False)
        return values[0].new_zeros(()), *(value.view_as(value) for value in values)

    @staticmethod
    def backward(ctx: Any, *gradients: Tensor | None) -> tuple[Tensor | None, ...]:
        ctx.on_enter()
        return None, *means([torch.zeros_like(each, device=ctx.device) for each in ctx.empty], gradients[1:])


class _Led(Function):
    """The same tensor, whose gradient comes to where a number was made, too."""

    @staticmethod
    def forward(ctx: Any, tensor: Tensor, number: Tensor) -> Tensor:
        ctx.like = number
        return tensor.view_as(tensor)

    @staticmethod
    def backward(ctx: Any, *gradients: Tensor) -> tuple[Tensor, Tensor]:
        return gradients[0], torch.zeros_like(ctx.like)


def enter_whole(
    values: Sequence[Tensor], on_enter: Callable[[], None]
) -> tuple[Callable[[Tensor], Tensor], list[Tensor]]:
    """The same values, each with its true gradient on every rank, whichever ranks make use of it.

    Args:
        values: at least one; all have gradients. on_enter: as for `split`.

    Returns:
        What every output with a gradient has to be put through, and the values for the forward.
    """
    number, *inside = apply(GivenWhole, on_enter, *values)
    return lambda output: apply(_Led, output, number), inside


def means(zeros: Sequence[Tensor], found: Sequence[Tensor | None]) -> list[Tensor | None]:
    """The means over ranks of gradients that some ranks may lack, None where all do; a collective for each dtype.

    Args:
        zeros: what a gradient is that a rank lacks. found: those of this rank.
    """
    result: list[Tensor | None] = [None] * len(found)
    for kind in dict.fromkeys(each.dtype for each in zeros):
        places = [place for place, each in enumerate(zeros) if each.dtype == kind]
        given = [found[place] for place in places]
        dense = [zeros[place] if part is None else part.to_dense() for place, part in zip(places, given, strict=True)]
        got = dense[0].new_tensor([float(part is not None) for part in given])
        mean = sum_over_ranks(torch.cat([*(part.flatten() for part in dense), got])) / world_size()
        *parts, ranks = mean.split([*(part.numel() for part in dense), len(given)])
        some = ranks.tolist() if any(part is None for part in given) else [1.0] * len(given)
        for place, part, like, mine, had in zip(places, parts, dense, given, some, strict=True):
            if had:
                whole = part.view_as(like)
                result[place] = whole.to_sparse(1) if mine is not None and mine.is_sparse else whole
    return result
