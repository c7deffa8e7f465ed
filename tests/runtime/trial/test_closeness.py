"""A model that rounds otherwise in another size of batch is divided, and a worse one judged in float64."""

from __future__ import annotations

from typing import ClassVar

import pytest
import torch
from ddpify_runtime import DistributedDataParallel
from torch import Tensor

from tests.runtime.processes import run
from tests.runtime.training import (
    Classifier,
    watch,
)

STEP = [0]  # of a loop; no module can be seen to depend on it


class RoundsWorse(Classifier):
    """Differs a little with the size of the batch, as the order of a sum does; later more than at first."""

    def forward(self, x: Tensor) -> Tensor:
        return super().forward(x) * (1 + (1e-7 if STEP[0] < 2 else 5e-6) * len(x))


class RoundsBadly(Classifier):
    """Differs with the size of the batch, later by 5000 times the rounding of its numbers (6e-4, in float64 1e-12)."""

    seen: ClassVar[list[int]] = []

    def __init__(self, begin: int) -> None:
        super().__init__()
        self.begin = begin

    def forward(self, x: Tensor) -> Tensor:
        self.seen.append(len(x))
        return super().forward(x) * (1 + (5000 if STEP[0] >= self.begin else 0) * torch.finfo(x.dtype).eps * len(x))


def round_badly(begin: int) -> int:
    model = DistributedDataParallel(RoundsBadly(begin))
    for STEP[0] in range(5):
        model(torch.randn(12, 8))
    return model.seen[-1]


def round_worse() -> int:
    model = DistributedDataParallel(RoundsWorse())
    seen = watch(model)
    for STEP[0] in range(5):
        model(torch.randn(12, 8))
    return seen[-1]


def test_a_model_that_rounds_worse_later_goes_on() -> None:
    assert run(2, round_worse) == [6, 6]


@pytest.mark.parametrize("begin", [0, 2])
def test_a_model_that_rounds_badly_is_judged_in_float64(begin: int) -> None:
    assert run(2, round_badly, begin) == [6, 6]


class Stepped(Classifier):
    """Has an optimizer of its own, as a discriminator may."""

    def __init__(self) -> None:
        super().__init__()
        self.optimizer = torch.optim.Adam(self.parameters())


def freeze_with_an_optimizer() -> list[int]:
    model = DistributedDataParallel(Stepped())
    seen, rows = watch(model), []
    for _ in range(5):
        model.requires_grad_(True)
        model(torch.randn(12, 8)).square().mean().backward()
        rows.append(seen[-1])
        model.optimizer.step()
        model.requires_grad_(False)
        x = torch.randn(12, 8, requires_grad=True)
        model(x).square().mean().backward()
        rows.append(seen[-1])
    return rows


def test_an_optimizer_that_a_module_holds_is_no_state_of_its_forward() -> None:
    """Its state has frozen parameters, which each copy has anew, as keys."""
    assert run(2, freeze_with_an_optimizer) == [[6] * 10] * 2
