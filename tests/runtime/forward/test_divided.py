"""A divided forward: each rank computes its rows, and what it returns are rows of the same size on every rank."""

from __future__ import annotations

import pytest
import torch
from ddpify_runtime import DistributedDataParallel
from torch import Tensor, nn

from tests.runtime.processes import run
from tests.runtime.training import (
    Reduction,
    linear,
    rows_seen,
)


class CutsToTheLongest(nn.Module):
    """Gives the time steps that any of its samples has."""

    def __init__(self) -> None:
        super().__init__()
        self.layer = nn.Linear(5, 3)

    def forward(self, x: Tensor, lengths: Tensor) -> Tensor:
        there = (torch.arange(6) < lengths[:, None]).any(0)
        return self.layer(x[:, there])  # type: ignore[no-any-return]


def cut() -> str:
    """Sequences of one length at first, which divide; in the third batch not every rank has a long one."""
    model = DistributedDataParallel(CutsToTheLongest())
    try:
        for step in range(3):
            model(torch.randn(8, 6, 5), torch.tensor([6, 5] * 4 if step == 2 else [6] * 8))
    except RuntimeError as error:
        return f"{step}: {error}"
    return ""


def test_sizes_that_come_from_values_are_compared() -> None:
    for message in run(2, cut):
        assert message.startswith("2: ddpify: the training forward of CutsToTheLongest returned rows of another size")


@pytest.mark.parametrize("reduction", ["ddp", "native"])
def test_each_rank_computes_its_share(reduction: Reduction) -> None:
    assert run(3, rows_seen, linear(), (torch.randn(12, 8),), reduction) == [4, 4, 4]
