"""Forwards that decide by the numbers of a batch: found by trying, or read, and computed whole."""

from __future__ import annotations

from collections.abc import Iterator
from functools import partial
from typing import Any

import pytest
import torch.nn.functional as F
from torch import Tensor

from tests.runtime.training import (
    Case,
    Classifier,
    Reduction,
    assert_trains_the_same,
    count_step,
    in_turns,
    register,
)

CASES: dict[str, Case] = {}
case = partial(register, CASES)


class DecidesByTheBatch(Classifier):
    """Scales a batch that has a large value, which the first batches have not, and later not every share."""

    def forward(self, x: Tensor) -> Tensor:
        if x.abs().max() > 3:
            x = x / 4
        return super().forward(x)


class DecidesByAList(Classifier):
    """The same in plain Python."""

    def forward(self, x: Tensor) -> Tensor:
        largest = max(max(row) for row in x.abs().tolist())
        return super().forward(x / 4 if largest > 3 else x)


class DecidesByOneSample(Classifier):
    """By the second sample, which another rank has."""

    def forward(self, x: Tensor) -> Tensor:
        return super().forward(x / 4 if x[1, 0].item() > 3 else x)


class ScalesByTheBatch(Classifier):
    """By a number that is not read, and changes nothing until it is large."""

    def forward(self, x: Tensor) -> Tensor:
        return super().forward(x / x.abs().max().clamp(min=4))


@case(DecidesByTheBatch)
def decision_by_a_value(model: Any, x: Tensor, y: Tensor) -> Iterator[Tensor]:
    x = x.clamp(-2, 2)
    if count_step(model) > 3:
        x[1, 0] = 5
    yield F.cross_entropy(model(x), y)


CASES["decision_in_python"] = DecidesByAList, decision_by_a_value


CASES["scaled_by_the_batch"] = ScalesByTheBatch, decision_by_a_value


CASES["decision_by_a_sample"] = DecidesByOneSample, decision_by_a_value


@pytest.mark.parametrize(("name", "world_size", "reduction"), in_turns(CASES))
@pytest.mark.filterwarnings("ignore")
def test_trains_what_one_process_trains(name: str, world_size: int, reduction: Reduction) -> None:
    assert_trains_the_same(CASES[name], world_size, reduction)
