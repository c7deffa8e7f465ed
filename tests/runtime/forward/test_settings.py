"""What a forward does may depend on an argument, or on what it has seen."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from functools import partial
from typing import Any

import pytest
import torch.nn.functional as F
from torch import Tensor, nn

from tests.runtime.training import (
    Case,
    Classifier,
    Reduction,
    assert_trains_the_same,
    in_turns,
    register,
)

CASES: dict[str, Case] = {}
case = partial(register, CASES)


class HasModes(Classifier):
    """An argument decides what it does."""

    def forward(self, x: Tensor, centred: bool = False) -> Tensor:
        return super().forward(x - x.mean(0) if centred else x)


@case(HasModes)
def modes(model: nn.Module, x: Tensor, y: Tensor) -> Iterator[Tensor]:
    yield F.cross_entropy(model(x), y)
    yield F.cross_entropy(model(x, centred=True), y)


class HasWords(Classifier):
    """A list of words decides what it does."""

    def forward(self, x: Tensor, steps: Sequence[str] = ()) -> Tensor:
        return super().forward(x - x.mean(0) if "centre" in steps else x)


@case(HasWords)
def words(model: nn.Module, x: Tensor, y: Tensor) -> Iterator[Tensor]:
    yield F.cross_entropy(model(x, ["scale"]), y)
    yield F.cross_entropy(model(x, ["centre"]), y)


class Measures(Classifier):
    """Returns a number that is a constant only at first."""

    steps = 0

    def forward(self, x: Tensor) -> Any:
        self.steps += 1
        y: Tensor = super().forward(x)
        return y, y.detach().max() * (self.steps > 1)


@case(Measures)
def a_measure_in_the_output(model: nn.Module, x: Tensor, y: Tensor) -> Iterator[Tensor]:
    output, largest = model(x)
    yield F.cross_entropy(output, y) * (1 + largest)


@pytest.mark.parametrize(("name", "world_size", "reduction"), in_turns(CASES))
@pytest.mark.filterwarnings("ignore")
def test_trains_what_one_process_trains(name: str, world_size: int, reduction: Reduction) -> None:
    assert_trains_the_same(CASES[name], world_size, reduction)
