"""torch.autograd.grad of parameters that the ranks train together (HAZARDS L15)."""

from __future__ import annotations

from collections.abc import Iterable
from typing import Any

import torch
import torch.distributed as dist
from torch import Tensor, nn

from ..forward import region
from ..lazy.batch import Share
from ..sharding.collectives import leave, sum_over_ranks, world_size
from .reduction import enter_all


def grad(
    outputs: Any,
    inputs: Tensor | Iterable[Tensor],
    grad_outputs: Any = None,
    retain_graph: bool | None = None,
    create_graph: bool = False,
    only_inputs: bool = True,
    allow_unused: bool | None = None,
    is_grads_batched: bool = False,
    materialize_grads: bool = False,
) -> tuple[Tensor | None, ...]:
    """As torch.autograd.grad, and those of parameters are what one process computes; a collective for these.

    Their gradients are averaged, as those of `.backward()` are: the rule of sharding/collectives.py makes that right
    for what was used inside and outside of a divided forward. What a script makes of parameters, such as the weights of
    an inner step, counts as one; samples inside of a divided forward do not.

    Args: of torch.autograd.grad.
    Returns: as many gradients as inputs, of their shapes; differentiable again with `create_graph`.
    """
    listed = (inputs,) if isinstance(inputs, Tensor) else tuple(inputs)
    found: tuple[Tensor | None, ...] = torch.autograd.grad(
        outputs,
        listed,
        grad_outputs,
        retain_graph,
        create_graph,
        only_inputs,
        allow_unused,
        is_grads_batched,
        materialize_grads=materialize_grads,
    )
    here = region.current()
    if not dist.is_initialized() or region.alone() or (here is not None and here.mode != "share"):
        return found
    places = [place for place, each in enumerate(listed) if _is_trained(each, inside=here is not None)]
    if not places:
        return found
    gradients = list(found)
    for place, gradient in zip(places, _averaged([found[place] for place in places]), strict=True):
        gradients[place] = gradient
    return tuple(gradients)


def _is_trained(tensor: Tensor, inside: bool) -> bool:
    if isinstance(tensor, Share):  # joined by its own torch.autograd.grad
        return False
    return isinstance(tensor, nn.Parameter) or not inside  # inside of a divided forward, others are samples


def _averaged(gradients: list[Tensor | None]) -> list[Tensor | None]:
    """The means over ranks, one collective for each dtype."""
    averaged: list[Tensor | None] = list(gradients)
    kinds = {(gradient.dtype, gradient.device) for gradient in gradients if gradient is not None}
    for kind in sorted(kinds, key=str):
        places = [
            place for place, each in enumerate(gradients) if each is not None and (each.dtype, each.device) == kind
        ]
        parts = [each for each in gradients if each is not None and (each.dtype, each.device) == kind]
        mean = sum_over_ranks(torch.cat([part.flatten() for part in parts])) / world_size()
        flat = leave(mean, enter_all) if mean.requires_grad else mean
        for place, part, of_all in zip(places, parts, flat.split([part.numel() for part in parts]), strict=True):
            averaged[place] = of_all.view_as(part)
    return averaged
