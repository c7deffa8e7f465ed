"""What a model keeps of its batches: a running centre, a list of features, a term for the loss."""

from __future__ import annotations

from collections.abc import Iterator
from functools import partial
from typing import Any

import pytest
import torch
import torch.nn.functional as F
from torch import Tensor

from tests.runtime.training import (
    Case,
    Classifier,
    Reduction,
    assert_trains_the_same,
    in_turns,
    register,
    train_plainly,
)

CASES: dict[str, Case] = {}
case = partial(register, CASES)


class SideOutput(Classifier):
    """Keeps a term for the loss as an attribute."""

    def forward(self, x: Tensor) -> Tensor:
        output: Tensor = super().forward(x)
        self.term = output.square().mean()
        return output


@case(SideOutput)
def side_output(model: Any, x: Tensor, y: Tensor) -> Iterator[Tensor]:
    yield F.cross_entropy(model(x), y) + model.term


class FillsAList(Classifier):
    """Keeps its features in a list that the loss reads."""

    def __init__(self) -> None:
        super().__init__()
        self.features: list[Tensor] = []

    def forward(self, x: Tensor) -> Tensor:
        self.features.append(torch.tanh(self.first(x)))
        return super().forward(x)


@case(FillsAList)
def filled_list(model: Any, x: Tensor, y: Tensor) -> Iterator[Tensor]:
    yield F.cross_entropy(model(x), y) + model.features[-1].square().mean()
    assert len(model.features[-1]) == len(x)
    model.features.clear()


class Keeps(Classifier):
    """Keeps things of its own: a running centre, counts in a dict, a running maximum, a generator."""

    def __init__(self, what: str) -> None:
        super().__init__()
        self.what, self.centre, self.counts, self.scale = what, torch.zeros(6), {"steps": 0}, 1.0
        if what == "generator":
            self.generator = torch.Generator().manual_seed(4)

    def forward(self, x: Tensor) -> Tensor:
        h = torch.tanh(self.first(x))
        self.counts["steps"] += 1
        if self.what == "centre":
            self.centre.mul_(0.9).add_(0.1 * h.detach().mean(0))
            h = h - self.centre
        elif self.what == "scale":
            self.scale = 0.9 * self.scale + 0.1 * x.abs().max().item()
        elif self.what == "generator":
            h = h + 0.1 * torch.randn(h.shape, generator=self.generator)
        return self.head(h) / self.scale * (1 + 0.1 * self.counts["steps"])  # type: ignore[no-any-return]


for kept in ("centre", "counts", "scale", "generator"):
    CASES[f"keeps_{kept}"] = partial(Keeps, kept), train_plainly


@pytest.mark.parametrize(("name", "world_size", "reduction"), in_turns(CASES))
@pytest.mark.filterwarnings("ignore")
def test_trains_what_one_process_trains(name: str, world_size: int, reduction: Reduction) -> None:
    assert_trains_the_same(CASES[name], world_size, reduction)
