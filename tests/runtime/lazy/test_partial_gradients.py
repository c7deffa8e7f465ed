"""Gradients through the whole of a number in parts: averaged over ranks, they are those of one process."""

from __future__ import annotations

import pytest
import torch
import torch.distributed as dist
from ddpify_runtime.lazy.partial import partial
from ddpify_runtime.lazy.partial_gradients import inside

from tests.runtime.processes import run

SAMPLES = torch.tensor([1.0, 2.0, 3.0, 4.0, 5.0, 6.0], dtype=torch.float64)
PENALTY = 0.3


def averaged() -> float:
    """The gradient of a weight through the square of a mean loss and a penalty that is read as a whole."""
    weight = torch.tensor(0.5, dtype=torch.float64, requires_grad=True)
    mine = SAMPLES[dist.get_rank() :: dist.get_world_size()]
    loss = partial((weight * mine).square().sum(), PENALTY * weight, (), divisor=len(SAMPLES))
    torch.exp(loss).square().backward()
    assert weight.grad is not None
    dist.all_reduce(weight.grad)
    return weight.grad.item() / dist.get_world_size()


@pytest.mark.parametrize("world_size", [2, 3])
def test_the_gradient_of_the_whole_is_that_of_one_process(world_size: int) -> None:
    weight = torch.tensor(0.5, dtype=torch.float64, requires_grad=True)
    loss = (weight * SAMPLES).square().sum() / len(SAMPLES) + PENALTY * weight
    torch.exp(loss).square().backward()
    assert weight.grad is not None
    assert run(world_size, averaged) == [pytest.approx(weight.grad.item(), rel=1e-14)] * world_size


def differentiated() -> tuple[float, float]:
    """What a part gets, and its derivative with respect to a gradient that every rank has."""
    gradient = torch.tensor(3.0, requires_grad=True)
    made = inside(gradient, 2)
    (again,) = torch.autograd.grad(made, gradient)
    return made.item(), again.item()


def test_the_gradient_of_a_part_can_be_differentiated_again() -> None:
    assert run(3, differentiated) == [(4.5, 1.5)] * 3
