"""Why a forward cannot be divided may differ from rank to rank; what becomes of it may not."""

from __future__ import annotations

import warnings
from typing import Any

import pytest
import torch
from ddpify_runtime import DistributedDataParallel
from torch import Tensor, nn

from ..processes import run


class FailsOnOneRank(nn.Module):
    """Cannot compute the rows of rank 1 alone, and mixes those of rank 0."""

    def __init__(self) -> None:
        super().__init__()
        self.layer = nn.Linear(4, 2)

    def forward(self, x: Tensor) -> Any:
        x.new_zeros(9).view(-1, len(x) if len(x) == 2 else 1)
        return self.layer(x - x.mean(0))


def train() -> list[float]:
    torch.manual_seed(0)
    model = DistributedDataParallel(FailsOnOneRank())
    optimizer = torch.optim.SGD(model.parameters(), lr=0.1)
    losses = []
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        for _ in range(3):
            optimizer.zero_grad()
            loss = model(torch.randn(6, 4)).square().mean()
            loss.backward()
            optimizer.step()
            losses.append(round(float(loss.detach()), 5))
    return losses


def test_ranks_that_fail_in_ways_of_their_own_do_the_same() -> None:
    (alone,) = run(1, train)
    assert run(2, train) == [alone, alone]


def traced(train: bool) -> list[float]:
    torch.manual_seed(0)
    model = DistributedDataParallel(nn.Sequential(nn.Linear(4, 3), nn.Tanh(), nn.Linear(3, 1)))
    optimizer = torch.optim.SGD(model.parameters(), lr=0.1)
    x = torch.randn(6, 4)
    for _ in range(2 * train):
        optimizer.zero_grad()
        model(x).square().mean().backward()
        optimizer.step()
    with torch.no_grad(), warnings.catch_warnings():
        warnings.simplefilter("ignore", DeprecationWarning)
        copy = torch.jit.trace(model, x)
    return [round(float(value), 5) for value in copy(torch.ones(5, 4)).detach().flatten()]


@pytest.mark.parametrize("train", [False, True])
def test_a_trace_is_of_the_forward_of_one_process(train: bool) -> None:
    (alone,) = run(1, traced, train)
    assert run(2, traced, train) == [alone, alone]
