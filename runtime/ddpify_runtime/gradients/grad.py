"""torch.autograd.grad of parameters that the ranks train together (HAZARDS L15)."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from typing import Any

import torch
import torch.distributed as dist
from torch import Tensor

from ..forward import region
from ..sharding.collectives import leave
from ..sharding.given_whole import means
from .reduction import enter_all, is_trained


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
    for what was used inside and outside of a divided forward. So are those of libraries, which call torch.autograd.grad
    (passes.py); this name says it where a script does. What was given to a forward, samples or the weights of an inner
    step, has its true gradient without.

    Args: of torch.autograd.grad.
    Returns: as many gradients as inputs, of their shapes; differentiable again with `create_graph`.
    """
    found: tuple[Tensor | None, ...] = torch.autograd.grad(
        outputs,
        (inputs,) if isinstance(inputs, Tensor) else tuple(inputs),
        grad_outputs,
        retain_graph,
        create_graph,
        only_inputs,
        allow_unused,
        is_grads_batched,
        materialize_grads=materialize_grads,
    )
    return found


def average(inputs: Sequence[Any], found: Sequence[Tensor | None]) -> tuple[Tensor | None, ...]:
    """The gradients that a pass through a divided forward has given back, those of parameters averaged.

    Args:
        inputs: what was differentiated by. found: the gradients.
    """
    here = region.current()
    gradients = list(found)
    if not dist.is_initialized() or region.alone() or (here is not None and here.mode != "shard"):
        return tuple(gradients)
    places = [place for place, each in enumerate(inputs) if is_trained(each)]
    zeros = [torch.zeros_like(inputs[place]) for place in places]
    for place, mean in zip(places, means(zeros, [found[place] for place in places]), strict=True):
        gradients[place] = leave(mean, enter_all) if mean is not None and mean.requires_grad else mean
    return tuple(gradients)
