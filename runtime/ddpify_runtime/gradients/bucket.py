"""Gradients that travel together: one all-reduce for many small ones, while the backward goes on."""

from __future__ import annotations

from collections.abc import Sequence
from itertools import repeat
from operator import attrgetter, is_not
from typing import Any

import torch
import torch.distributed as dist
from torch import Tensor, nn

from .. import engines
from ..agreement import interrupts
from ..sharding.collectives import begin_sum
from ..torch_internals import copy_all

_FIRST, _LIMIT = 2**20, 25 * 2**20  # bytes of the first bucket and of others, as torch's
GRADIENT = attrgetter("grad")
_LARGE = 2**16  # values, above which an operation for each gradient costs less than another look at all of them


class Bucket:
    """The gradients of some parameters of one dtype.

    places: the numbers of the parameters. waiting: how many of them have no gradient yet in this pass. work: the
    collective that runs. gradients: those that were sent, where each parameter had one that is dense. at_once: whether
    gradients are taken when the bucket is sent.
    """

    def __init__(self, places: Sequence[int], parameters: Sequence[nn.Parameter], like: Tensor, flags: int) -> None:
        """parameters: those at the places. like: tells dtype and device. flags: how many numbers travel along."""
        self.places, self.parameters = places, parameters
        self.waiting = 0
        self.work: Any = None
        self.gradients: list[Tensor] = []
        self._sizes = [*(parameter.numel() for parameter in parameters), flags]
        self._scale = 1 / dist.get_world_size()
        self._make(like)

    def _make(self, like: Tensor) -> None:
        self._flat = torch.zeros(sum(self._sizes), dtype=like.dtype, device=like.device)
        *parts, self._flags = self._flat.split(self._sizes)
        self._means = [
            part.as_strided(parameter.shape, torch.empty_like(parameter, device="meta").stride())
            for part, parameter in zip(parts, self.parameters, strict=True)
        ]
        self.at_once = sum(self._sizes) < _LARGE * len(self._means)
        self._parts = [*self._means, self._flags]
        self._all = torch.full_like(self._flags, dist.get_world_size())  # flags that are 1 once they are scaled

    def take(self, at: int) -> None:
        """A gradient is there: while it is in the processor's cache, if it is large."""
        if not self.at_once:
            self._take(self.parameters[at].grad, self._means[at])

    def _take(self, gradient: Tensor | None, mean: Tensor) -> None:
        if gradient is None:
            mean.zero_()
        elif gradient is mean:
            mean.mul_(self._scale)
        elif gradient.is_sparse or gradient.requires_grad or torch.is_grad_enabled():
            mean.copy_(gradient.detach().to_dense() * self._scale)
        else:
            torch.mul(gradient, self._scale, out=mean)

    def send(self, flags: Sequence[int] = (), gradients: Sequence[Tensor | None] | None = None) -> None:
        """Begin to add what the ranks have taken, without gradients of its own.

        Args:
            flags: of the last bucket, a number for each parameter of all. gradients: of its parameters, if at hand.
        """
        if self.at_once:
            gradients = [*map(GRADIENT, self.parameters)] if gradients is None else gradients
            if self._take_all(gradients):
                self._flat.mul_(self._scale)
            else:
                for gradient, mean in zip(gradients, self._means, strict=True):
                    self._take(gradient, mean)
        if flags and not (self.gradients and all(flags)):
            self._flags.copy_(torch.tensor(flags, device="cpu"))
        self.work = begin_sum(self._flat)

    def _take_all(self, gradients: Sequence[Tensor | None]) -> bool:
        """Take all gradients in one call, where each parameter has one that is dense."""
        self.gradients = []
        if not all(map(is_not, gradients, repeat(None))):
            return False
        try:
            copy_all(self._parts, [*gradients, self._all])  # of one that is its mean to itself
        except RuntimeError:  # one is sparse
            return False
        self.gradients = [*gradients]  # type: ignore[list-item]
        return True

    def wait(self) -> None:
        """Until they are added."""
        if self.work is not None:
            interrupts.wait(self.work)
            self.work = None

    def means(self) -> list[Tensor]:
        """The mean of each gradient over the ranks."""
        return self._means

    def flags(self) -> list[float]:
        """The sums of the flags over the ranks."""
        flags: list[float] = self._flags.tolist()
        return flags


class Recorded(Bucket):
    """On a device whose tensors share no memory: put together when it is sent, in the program that is recorded."""

    def _make(self, like: Tensor) -> None:
        self._like, self.at_once = like, True

    def take(self, at: int) -> None: ...

    def send(self, flags: Sequence[int] = (), gradients: Sequence[Tensor | None] | None = None) -> None:
        device = self._like.device  # where XLA makes ones in its graph, and other numbers are sent
        sent = torch.ones(len(flags), device=device) if all(flags) else torch.tensor(flags, device="cpu").to(device)
        given = [torch.zeros_like(each) if each.grad is None else each.grad.detach() for each in self.parameters]
        self._flat = torch.cat([*(each.flatten() for each in given), sent.to(self._like.dtype)])
        self.work = dist.all_reduce(self._flat, async_op=True)

    def means(self) -> list[Tensor]:
        *parts, _ = (self._flat * self._scale).split(self._sizes)
        return [part.view_as(parameter) for part, parameter in zip(parts, self.parameters, strict=True)]

    def flags(self) -> list[float]:
        flags: list[float] = self._flat.split(self._sizes)[-1].tolist()
        return flags


def buckets(parameters: Sequence[nn.Parameter], places: Sequence[int], in_one: bool) -> list[Bucket]:
    """Buckets of the parameters at some places, the last parameters first, as a backward comes to them.

    Args:
        parameters: all of them; the last bucket has a flag for each. in_one: all of one dtype in one bucket.
    """
    groups: list[list[int]] = []
    filling: dict[Any, tuple[list[int], int]] = {}  # by kind: a group, and how many bytes it has
    for place in reversed(places):
        parameter = parameters[place]
        kind = parameter.dtype, parameter.device
        group, size = filling.get(kind, ([], 0))
        if not group or (not in_one and size >= (_FIRST if group is groups[0] else _LIMIT)):
            group, size = [], 0
            groups.append(group)
        group.append(place)
        filling[kind] = group, size + parameter.numel() * parameter.element_size()
    made = Recorded if engines.of(parameters[0].device).records else Bucket
    groups = groups or [[]]  # for the flags
    return [
        made(
            group,
            [parameters[place] for place in group],
            parameters[group[0] if group else 0],
            len(parameters) if group is groups[-1] else 0,
        )
        for group in groups
    ]
