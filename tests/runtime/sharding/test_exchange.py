"""Sums and parts of short tensors over gloo, beside those of torch's own collectives."""

from __future__ import annotations

from collections import Counter
from pathlib import Path
from typing import Any

import pytest
import torch
import torch.distributed as dist
from ddpify_runtime.sharding import exchange
from ddpify_runtime.sharding.collectives import add_over_ranks, extreme_over_ranks, gather_parts
from torch import Tensor
from torch.profiler import ProfilerActivity, profile

from tests.runtime.processes import run

LONGEST = exchange._LIMIT // 4  # numbers of float32
GIVEN = {
    "a number": lambda: torch.randn(()),
    "float32": lambda: torch.randn(7, 3),
    "float64": lambda: torch.randn(5, dtype=torch.float64),
    "int64": lambda: torch.randint(100, (4,)),
    "complex": lambda: torch.randn(3, dtype=torch.complex64),
    "transposed": lambda: torch.randn(4, 6).t(),
    "none": lambda: torch.randn(0),
    "longest": lambda: torch.randn(LONGEST),
    "longer": lambda: torch.randn(LONGEST + 1),
    "float16": lambda: torch.randn(3).half(),
    "int32": lambda: torch.randint(100, (4,), dtype=torch.int32),
}


def added(name: str) -> tuple[Tensor, Tensor, Counter[str]]:
    """The sum of what the ranks have, that by torch's all_reduce in double precision, and what gloo ran for ours."""
    torch.manual_seed(dist.get_rank())
    given: Tensor = GIVEN[name]()
    expected = given.to(torch.complex128 if given.is_complex() else torch.float64, copy=True).contiguous()
    dist.all_reduce(expected)
    with profile(activities=[ProfilerActivity.CPU]) as seen:
        add_over_ranks(given)
        dist.barrier()
    return given, expected, Counter(event.name for event in seen.events() if event.name.startswith("gloo:"))


@pytest.mark.parametrize("world_size", [2, 3, 4])
@pytest.mark.parametrize("name", GIVEN)
def test_a_sum_is_that_of_all_ranks_and_the_same_on_each(name: str, world_size: int) -> None:
    ranks: list[Any] = run(world_size, added, name)
    by_ring = name in ("longer", "float16", "int32")
    for found, expected, ran in ranks:
        assert torch.equal(found, ranks[0][0])
        tolerance = 1e-2 if name == "float16" else 1e-6
        torch.testing.assert_close(found.to(expected.dtype), expected, rtol=tolerance, atol=tolerance)
        assert ran == {"gloo:all_reduce" if by_ring else "gloo:all_to_all": 1, "gloo:barrier": 1}


def extremes(numbers: int) -> list[Tensor]:
    """The least and the greatest of the ranks' numbers, which are their rank, and less by one for each place."""
    found = []
    for how in (dist.ReduceOp.MIN, dist.ReduceOp.MAX):
        found.append(dist.get_rank() - torch.arange(numbers))
        extreme_over_ranks(found[-1], how)
    return found


@pytest.mark.parametrize("numbers", [3, LONGEST])
def test_the_least_and_the_greatest_are_those_of_all_ranks(numbers: int) -> None:
    for least, greatest in run(3, extremes, numbers):
        assert torch.equal(least, -torch.arange(numbers)) and torch.equal(greatest, 2 - torch.arange(numbers))


def joined(size: int) -> list[Tensor]:
    return gather_parts(torch.full((size, 2), float(dist.get_rank())))


@pytest.mark.parametrize("size", [3, LONGEST])
def test_parts_come_in_the_order_of_the_ranks(size: int) -> None:
    for parts in run(3, joined, size):
        assert [part.shape for part in parts] == [(size, 2)] * 3
        assert [part.unique().tolist() for part in parts] == [[0], [1], [2]]


def of_a_new_group(meeting: str) -> list[float]:
    """A sum before and after the process group is made anew."""
    rank, world_size, number = dist.get_rank(), dist.get_world_size(), torch.ones(())
    add_over_ranks(number)
    dist.barrier()
    dist.destroy_process_group()
    dist.init_process_group("gloo", f"file://{meeting}", rank=rank, world_size=world_size)
    other = torch.ones(())
    add_over_ranks(other)
    dist.barrier()
    return [float(number), float(other)]


def test_another_process_group_is_noticed(tmp_path: Path) -> None:
    assert run(2, of_a_new_group, str(tmp_path / "store")) == [[2.0, 2.0]] * 2
