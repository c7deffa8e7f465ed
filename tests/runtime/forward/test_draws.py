"""What a divided forward draws: with DDPIFY_RANDOM=original the numbers of one process."""

from __future__ import annotations

from collections.abc import Iterator
from functools import partial

import pytest
import torch
import torch.nn.functional as F
from torch import Tensor, nn

from tests.runtime.training import (
    WAYS,
    Case,
    Checkpointed,
    Classifier,
    Reduction,
    assert_trains_the_same,
    register,
)

CASES: dict[str, Case] = {}
case = partial(register, CASES)


@case(lambda: Classifier(nn.Dropout(0.4)))
def dropout(model: nn.Module, x: Tensor, y: Tensor) -> Iterator[Tensor]:
    yield F.cross_entropy(model(x), y)


class Noisy(nn.Module):
    """A variational autoencoder's noise, and a categorical draw."""

    def __init__(self) -> None:
        super().__init__()
        self.to_code, self.back = nn.Linear(8, 4), nn.Linear(4, 8)

    def forward(self, x: Tensor) -> tuple[Tensor, Tensor]:
        code = self.to_code(x)
        noisy = code + torch.randn_like(code) + torch.bernoulli(torch.sigmoid(code.detach()))
        return self.back(noisy), code


@case(Noisy)
def noise_in_forward(model: nn.Module, x: Tensor, y: Tensor) -> Iterator[Tensor]:
    recovered, code = model(x)
    yield 0.01 * (F.mse_loss(recovered, x, reduction="sum") + code.square().sum())


@case(lambda: Checkpointed(nn.Linear(6, 6), nn.Dropout(0.3)))
def checkpointed_dropout(model: nn.Module, x: Tensor, y: Tensor) -> Iterator[Tensor]:
    yield F.cross_entropy(model(x), y)


@pytest.mark.parametrize(("world_size", "reduction"), WAYS)
@pytest.mark.parametrize("name", CASES)
@pytest.mark.filterwarnings("ignore")
def test_trains_what_one_process_trains(name: str, world_size: int, reduction: Reduction) -> None:
    assert_trains_the_same(CASES[name], world_size, reduction)
