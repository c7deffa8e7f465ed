"""The gradients of one module, averaged over ranks by one all-reduce at the end of each backward.

torch_xla's documentation calls this the native way, and measures it as faster than DistributedDataParallel on TPUs
(5 % on ResNet-50, 41 % on MNIST): there are no buckets that the host has to look after. That nothing overlaps with the
backward costs nothing on XLA, where all of a step runs later anyway.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import torch
import torch.distributed as dist
from torch import nn

from ..torch_internals import after_backward, graph_task
from .reduction import align


class NativeReduction:
    """Takes the place of `reduction.Reduction`."""

    def __init__(self, module: nn.Module, call: Callable[..., Any]) -> None:
        self.call = call
        self.parameters = [parameter for parameter in module.parameters() if parameter.requires_grad]
        self.task = -1
        align(self.parameters)

    def release(self) -> None:
        """Hold no parameter any more; this can be used no more."""
        self.parameters = []

    def forward(self, *args: Any, **kwargs: Any) -> Any:
        """The module's output for this rank's samples."""
        return self.call(*args, **kwargs)

    def enter(self) -> None:
        """A backward pass enters the shared region: reduce what it accumulates."""
        task = graph_task()
        if self.parameters and task != self.task:
            self.task = task
            after_backward(self._complete)

    def _complete(self) -> None:
        """All gradients of the pass are there. What earlier passes left is equal on all ranks, and so is its mean."""
        self.task = -1
        here = [parameter.grad is not None for parameter in self.parameters]
        given = [
            torch.zeros_like(parameter) if parameter.grad is None else parameter.grad for parameter in self.parameters
        ]
        device = given[0].device  # where XLA makes ones in its graph, and other numbers are sent
        got = torch.ones(len(here), device=device) if all(here) else torch.tensor(here).float().to(device)
        for dtype in dict.fromkeys(gradient.dtype for gradient in given):
            alike = [place for place, gradient in enumerate(given) if gradient.dtype == dtype]
            flat = torch.cat([*(given[place].flatten() for place in alike), got.to(dtype)])
            dist.all_reduce(flat)
            flat = flat / dist.get_world_size()
            sizes = [given[place].numel() for place in alike]
            *parts, anywhere = flat.split([*sizes, len(got)])
            for place, part in zip(alike, parts, strict=True):
                # Where this rank has none, another one may have it (M4, L14).
                if here[place]:
                    given[place].copy_(part.view_as(given[place]))
                elif anywhere[place]:
                    self.parameters[place].grad = part.view_as(given[place]).clone()
