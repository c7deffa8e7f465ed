"""The call of a sharded module divides its rows, and is one of all ranks."""

from __future__ import annotations

import warnings
from typing import Any

import torch
from ddpify_runtime import fully_shard, rank_zero_only
from torch import Tensor, nn

from tests.runtime import processes


class Net(nn.Module):
    def __init__(self) -> None:
        super().__init__()
        self.layer, self.head = nn.Linear(4, 4), nn.Linear(4, 2)

    def forward(self, x: Tensor) -> Any:
        return self.head(self.layer(x))


class Chosen(Net):
    """Has a layer that some of the samples go through."""

    def forward(self, x: Tensor) -> Any:
        output = self.layer(x)
        rows = (x[:, 0] > 0.5).nonzero()[:, 0]
        return self.head(output).index_add(0, rows, self.head(output[rows]))


def rows_of_each_rank(kind: type[Net]) -> list[int]:
    """How many rows the first layer is given, forward by forward."""
    warnings.simplefilter("ignore")
    torch.manual_seed(3)
    model = kind()
    counted: list[int] = []
    forward = model.layer.forward

    def counting(input: Tensor) -> Tensor:
        counted.append(len(input))
        return forward(input)

    model.layer.forward = counting  # type: ignore[method-assign]
    fully_shard(model)
    for _ in range(3):
        model(torch.rand(10, 4)).sum().backward()
    with torch.no_grad():
        model(torch.rand(7, 4)), model(torch.rand(7, 4))
    return counted


def test_each_rank_computes_its_rows() -> None:
    first, second = processes.run(2, rows_of_each_rank, Net)
    assert {first[-1], second[-1]} == {3, 4}
    assert first.count(5) >= 3 and second.count(5) >= 3


def test_every_rank_computes_all_where_a_layer_may_be_left_out() -> None:
    for counted in processes.run(2, rows_of_each_rank, Chosen):
        assert counted[-2:] == [7, 7] and counted.count(10) >= 3


def alone() -> str:
    warnings.simplefilter("ignore")
    model = fully_shard(nn.Sequential(nn.Linear(2, 2)))
    try:
        rank_zero_only(model)(torch.rand(4, 2))
    except RuntimeError as error:
        return str(error)
    return ""


def test_one_rank_alone_has_a_part_only() -> None:
    assert all("called by one rank alone" in answer for answer in processes.run(2, alone))
