"""BatchNorm over the whole batch of which each rank has a part (M8, M9)."""

from __future__ import annotations

from collections.abc import Iterator
from functools import partial
from typing import Any

import pytest
import torch
import torch.nn.functional as F
from torch import Tensor, nn

from tests.runtime.processes import run
from tests.runtime.training import (
    Case,
    Checkpointed,
    Classifier,
    Reduction,
    assert_trains_the_same,
    in_turns,
    register,
    rows_seen,
)

CASES: dict[str, Case] = {}
case = partial(register, CASES)


@case(lambda: Classifier(nn.BatchNorm1d(6)))
def batch_norm(model: nn.Module, x: Tensor, y: Tensor) -> Iterator[Tensor]:
    yield F.cross_entropy(model(x), y)


@case(lambda: Classifier(nn.BatchNorm1d(6)).double())
def batch_norm_with_a_gradient_penalty(model: nn.Module, x: Tensor, y: Tensor) -> Iterator[Tensor]:
    """In float64: the second derivative of a batch of 2 amplifies the rounding of float32."""
    x = x.double().requires_grad_()
    output = model(x)
    (slope,) = torch.autograd.grad(output.square().sum(), x, create_graph=True)
    yield F.cross_entropy(output, y) + slope.square().mean()


class Activated(nn.BatchNorm1d):
    """A batch normalisation with a forward of its own, as timm has."""

    def forward(self, input: Tensor) -> Tensor:
        assert self.momentum is not None
        given = input, self.running_mean, self.running_var, self.weight, self.bias
        return torch.relu(F.batch_norm(*given, training=self.training, momentum=self.momentum, eps=self.eps))


@case(lambda: Classifier(nn.Linear(6, 6, bias=False), Activated(6), nn.Linear(6, 6), Activated(6)))
def batch_norm_of_a_class_of_its_own(model: nn.Module, x: Tensor, y: Tensor) -> Iterator[Tensor]:
    yield F.cross_entropy(model(x), y)


@case(lambda: Classifier(nn.BatchNorm1d(6, momentum=None, affine=False)))
def batch_norm_cumulative(model: nn.Module, x: Tensor, y: Tensor) -> Iterator[Tensor]:
    yield F.cross_entropy(model(x), y)


@case(lambda: Classifier(nn.BatchNorm1d(6, momentum=None), Activated(6)))
def a_part_called_by_itself_before_the_model(model: nn.Module, x: Tensor, y: Tensor) -> Iterator[Tensor]:
    part: Any = model.middle
    features = part(x[:, :6])
    yield F.cross_entropy(model(x), y) + features.square().mean()


class ReentrantlyCheckpointed(Checkpointed):
    reentrant = True


@case(lambda: ReentrantlyCheckpointed(nn.Linear(6, 6), nn.BatchNorm1d(6)))
def checkpointed_batch_norm(model: nn.Module, x: Tensor, y: Tensor) -> Iterator[Tensor]:
    yield F.cross_entropy(model(x), y)


@pytest.mark.parametrize(("name", "world_size", "reduction"), in_turns(CASES))
@pytest.mark.filterwarnings("ignore")
def test_trains_what_one_process_trains(name: str, world_size: int, reduction: Reduction) -> None:
    assert_trains_the_same(CASES[name], world_size, reduction, tolerance=1e-5)


def test_each_rank_computes_its_share() -> None:
    assert run(3, rows_seen, Classifier(Activated(6)), (torch.randn(12, 8),)) == [4, 4, 4]
