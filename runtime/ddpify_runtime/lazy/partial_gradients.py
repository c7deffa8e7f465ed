"""The gradient of a number of which every rank has a part, where the whole of it is used."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import torch
from torch import Tensor
from torch.autograd import Function

from ..sharding.collectives import sum_over_ranks, world_size


class Total(Function):
    """The whole from its parts, of which the value is known."""

    @staticmethod
    def forward(ctx: Any, part: Tensor, value: Tensor, common: Tensor | None, on_enter: Callable[[], None]) -> Tensor:
        ctx.on_enter, ctx.has_common = on_enter, common is not None
        return value.clone()

    @staticmethod
    def backward(ctx: Any, *gradients: Tensor) -> tuple[Tensor, None, Tensor | None, None]:
        ctx.on_enter()
        return inside(gradients[0]), None, gradients[0] if ctx.has_common else None, None


class WholeOfPartial(Function):
    """The whole of a Partial that another Function has returned, in its own place of the graph."""

    @staticmethod
    def forward(ctx: Any, number: Any) -> Tensor:
        value: Tensor = number.value()
        return value.clone()

    @staticmethod
    def backward(ctx: Any, *gradients: Tensor) -> Tensor:
        return gradients[0]


class _Inside(Function):
    """A true gradient, the same on every rank, as the gradient of a part: see sharding/collectives.py for the rule."""

    @staticmethod
    def forward(ctx: Any, gradient: Tensor, divisor: int) -> Tensor:
        ctx.divisor = divisor
        return gradient * (world_size() / divisor)

    @staticmethod
    def backward(ctx: Any, *gradients: Tensor) -> tuple[Tensor, None]:
        return sum_over_ranks(gradients[0]) / ctx.divisor, None


def inside(gradient: Tensor, divisor: int = 1) -> Tensor:
    """What a part gets for the gradient of the whole, divided by `divisor`; it can be differentiated again."""
    if not torch.is_grad_enabled():  # nobody differentiates it again
        return gradient * (world_size() / divisor)
    made: Tensor = _Inside.apply(gradient, divisor)  # type: ignore[no-untyped-call]
    return made
