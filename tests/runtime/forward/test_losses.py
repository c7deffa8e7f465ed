"""Losses that a forward computes itself: over samples, over parameters, or both."""

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
    Classifier,
    Reduction,
    assert_trains_the_same,
    count_step,
    in_turns,
    register,
    rows_seen,
)

CASES: dict[str, Case] = {}
case = partial(register, CASES)


class OwnLoss(Classifier):
    """Returns its loss, over the labels that count."""

    def forward(self, x: Tensor, y: Tensor) -> tuple[Tensor, Tensor]:  # type: ignore[override]
        output: Tensor = super().forward(x)
        return output, F.cross_entropy(output, y, ignore_index=0)


@case(OwnLoss)
def loss_from_the_model(model: nn.Module, x: Tensor, y: Tensor) -> Iterator[Tensor]:
    yield model(x, y)[1]


class OwnLosses(Classifier):
    """Returns one loss of many kinds: means, sums, weights, masks, and one over its parameters."""

    def forward(self, x: Tensor, y: Tensor) -> Tensor:  # type: ignore[override]
        output: Tensor = super().forward(x)
        weight = torch.tensor([1.0, 2.0, 5.0])
        losses = [
            F.cross_entropy(output, y, weight=weight, ignore_index=0, label_smoothing=0.1),
            F.nll_loss(F.log_softmax(output, 1), y, weight=weight),
            F.cross_entropy(output, F.softmax(x[:, :3], 1)),
            nn.MSELoss()(output, x[:, :3]),
            F.smooth_l1_loss(output, x[:, :3], reduction="sum"),
            F.kl_div(F.log_softmax(output, 1), F.softmax(x[:, :3], 1), reduction="batchmean"),
            F.triplet_margin_loss(output, x[:, :3], x[:, 3:6]),
            (output.square() * (x[:, :3] > 0)).sum() / (x[:, :3] > 0).sum(),
            torch.mean(output.sigmoid()) * output.mean(),
            0.1 * self.head.weight.square().mean(),
        ]
        return torch.stack(losses).sum(0)


@case(OwnLosses)
def losses_from_the_model(model: nn.Module, x: Tensor, y: Tensor) -> Iterator[Tensor]:
    yield model(x, y) / 5


class Heard(Classifier):
    """Returns a loss over sequences of several lengths, and wants the gradient of its samples, as Wav2Vec2 does."""

    def forward(self, x: Tensor, y: Tensor) -> Tensor:  # type: ignore[override]
        x = x[:, :]
        x.requires_grad = True
        steps = super().forward(x)[:, None] * x[:, :5, None]
        scores = F.log_softmax(steps, 2).transpose(0, 1)
        targets = torch.stack([1 + y % 2, 2 - y % 2], 1)
        return F.ctc_loss(scores, targets, torch.full_like(y, 5), y % 3, zero_infinity=True)


@case(Heard)
def loss_over_sequences_from_the_model(model: nn.Module, x: Tensor, y: Tensor) -> Iterator[Tensor]:
    yield model(x, y)


class PenalisesZero(Classifier):
    """Penalises a parameter that starts at zero, where a sum over ranks looks like the sum of one."""

    def __init__(self) -> None:
        super().__init__()
        self.shift = nn.Parameter(torch.zeros(3))

    def forward(self, x: Tensor, y: Tensor) -> Tensor:  # type: ignore[override]
        return F.cross_entropy(super().forward(x) + self.shift, y) + self.shift.square().sum()


@case(PenalisesZero)
def penalty_from_zero(model: nn.Module, x: Tensor, y: Tensor) -> Iterator[Tensor]:
    yield model(x, y)


class SelectsSome(Classifier):
    """Its second loss is over samples of one kind, of which the first batches have none."""

    def forward(self, x: Tensor, y: Tensor) -> Tensor:  # type: ignore[override]
        output: Tensor = super().forward(x)
        return F.cross_entropy(output, y) + output[y == 2].square().sum()


@case(SelectsSome)
def selection_that_starts_empty(model: Any, x: Tensor, y: Tensor) -> Iterator[Tensor]:
    yield model(x, y if count_step(model) > 2 else y % 2)


class PenalisesItself(Classifier):
    """Adds a sum over its parameters, which must not be summed over ranks."""

    def forward(self, x: Tensor, y: Tensor) -> Tensor:  # type: ignore[override]
        return F.cross_entropy(super().forward(x), y) + 0.1 * self.head.weight.square().sum()


@case(PenalisesItself)
def penalty_from_the_model(model: nn.Module, x: Tensor, y: Tensor) -> Iterator[Tensor]:
    yield model(x, y)


@pytest.mark.parametrize(("name", "world_size", "reduction"), in_turns(CASES))
@pytest.mark.filterwarnings("ignore")
def test_trains_what_one_process_trains(name: str, world_size: int, reduction: Reduction) -> None:
    assert_trains_the_same(CASES[name], world_size, reduction)


@pytest.mark.parametrize("model", [OwnLoss, OwnLosses, PenalisesItself, Heard])
def test_each_rank_computes_its_share(model: type[nn.Module]) -> None:
    assert run(3, rows_seen, model(), (torch.randn(12, 8), torch.arange(12) % 3)) == [4, 4, 4]


def test_the_sums_of_batch_normalisation_are_no_losses() -> None:
    model = OwnLoss(nn.BatchNorm1d(6), nn.BatchNorm1d(6))
    assert run(3, rows_seen, model, (torch.randn(12, 8), torch.arange(12) % 3)) == [4, 4, 4]
