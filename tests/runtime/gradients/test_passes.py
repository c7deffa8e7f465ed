"""Which kind of pass through a graph runs."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import torch
from ddpify_runtime.gradients import passes

from tests.runtime.processes import run


def seen() -> tuple[list[bool], float]:
    kinds: list[bool] = []

    def average(inputs: Sequence[Any], found: Sequence[Any]) -> tuple[Any, ...]:
        return tuple(2 * each for each in found)

    def note(gradient: torch.Tensor) -> None:
        each = passes.running()
        kinds.append(each is not None)
        if each is not None:
            each.entered = True

    passes.follow(average)
    x = torch.ones(2, requires_grad=True)
    y = x * 3
    y.register_hook(note)
    y.sum().backward(retain_graph=True)
    (gradient,) = torch.autograd.grad(y.sum(), x)
    return kinds, gradient.sum().item()


def test_gradients_that_are_given_back_are_averaged_and_nothing_else() -> None:
    assert run(1, seen) == [([False, True], 12.0)]


def test_parameters() -> None:
    assert passes.is_parameter(torch.nn.Parameter(torch.ones(1))) and not passes.is_parameter(torch.ones(1))
