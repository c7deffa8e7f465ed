"""A model that becomes another one while it trains (M7): it is divided as it is then."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from functools import partial
from typing import Any

import pytest
import torch.nn.functional as F
from torch import Tensor, nn

from tests.runtime.training import (
    Case,
    Classifier,
    Reduction,
    Step,
    assert_trains_the_same,
    count_step,
    in_turns,
    register,
)

CASES: dict[str, Case] = {}
case = partial(register, CASES)


class Mixes(nn.Module):
    """A layer that looks at the other samples, without parameters."""

    def forward(self, x: Tensor) -> Tensor:
        return x - 0.1 * x.mean(0)


def changing(change: Callable[[Any], None]) -> Step:
    """From the third step on, the model is another (M7)."""

    def step(model: Any, x: Tensor, y: Tensor) -> Iterator[Tensor]:
        if count_step(model) == 3:
            change(model)
        yield F.cross_entropy(model(x), y)

    return step


def replacing(layer: Callable[[], nn.Module]) -> Step:
    """From the third step on, another layer is in the middle."""
    return changing(lambda model: setattr(model, "middle", layer()))


def in_place_of_a_method(model: Any) -> None:
    """As libraries of adapters do: another function computes what a part does."""
    forward = model.middle.forward
    model.middle.forward = lambda x: forward(x) - 0.1 * forward(x).mean(0)


CASES["replaced_by_batch_norm"] = Classifier, replacing(lambda: nn.BatchNorm1d(6, affine=False))


CASES["replaced_by_dropout"] = Classifier, replacing(lambda: nn.Dropout(0.3))


CASES["replaced_by_a_layer_that_mixes"] = Classifier, replacing(Mixes)


CASES["replaced_forward_of_a_part"] = Classifier, changing(in_place_of_a_method)


CASES["replaced_class_of_a_part"] = Classifier, changing(lambda model: setattr(model.middle, "__class__", Mixes))


@pytest.mark.parametrize(("name", "world_size", "reduction"), in_turns(CASES))
@pytest.mark.filterwarnings("ignore")
def test_trains_what_one_process_trains(name: str, world_size: int, reduction: Reduction) -> None:
    tolerance = 1e-5 if name == "replaced_by_batch_norm" else 1e-6  # its statistics of 2 samples amplify rounding
    assert_trains_the_same(CASES[name], world_size, reduction, tolerance)
