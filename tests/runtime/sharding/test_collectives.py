"""Splitting and joining rows, and their gradients."""

from __future__ import annotations

import pytest
import torch
from ddpify_runtime.sharding.collectives import (
    Rows,
    count,
    gather,
    gather_with_grad,
    shard,
    split,
    spread,
    sum_over_ranks,
)

from tests.runtime.processes import run

FORMS = [Rows(0), Rows(1), Rows(2), Rows(0, major=False)]


def round_trip(total: int) -> list[bool]:
    answers = []
    for rows in FORMS:
        for kind in (torch.float32, torch.int64, torch.bool):
            size = [3, 4, 5]
            size[rows.dim] = 2 * total
            whole = torch.arange(torch.Size(size).numel()).reshape(size).to(kind)
            part = shard(whole, total, rows)
            answers.append(part.size(rows.dim) == 2 * count(total) and torch.equal(gather(part, total, rows), whole))
    return answers


@pytest.mark.parametrize("total", [3, 4, 7])
def test_join_undoes_share(total: int) -> None:
    for answers in run(3, round_trip, total):
        assert answers and all(answers)


def spreads() -> list[float]:
    rank = torch.distributed.get_rank()
    whole = spread(torch.tensor([7, rank, -(2**61) * rank]))
    return [*whole.tolist(), *spread(torch.tensor([0.1, 0.1 + rank / 8], dtype=torch.float64)).tolist()]


def test_numbers_that_differ_between_ranks() -> None:
    assert run(2, spreads) == [[0, 1, 2**61, 0.0, 0.125]] * 2


def gradients() -> tuple[list[float], list[float], list[float]]:
    """First and second derivative of sum(tanh(x)^3) through a share region, and the true ones."""
    torch.manual_seed(0)
    x = torch.randn(7, dtype=torch.float64, requires_grad=True)

    def nothing() -> None: ...

    part = torch.tanh(split(x, 7, Rows(0), nothing))
    loss = (gather_with_grad(part, 7, Rows(0), nothing) ** 3).sum()
    (first,) = torch.autograd.grad(loss, x, create_graph=True)
    (second,) = torch.autograd.grad(first.square().sum(), x)
    true_loss = (torch.tanh(x) ** 3).sum()
    (true_first,) = torch.autograd.grad(true_loss, x, create_graph=True)
    (true_second,) = torch.autograd.grad(true_first.square().sum(), x)
    return first.tolist(), second.tolist(), [*true_first.tolist(), *true_second.tolist()]


def test_derivatives_of_any_order_are_those_of_the_whole() -> None:
    for first, second, true in run(3, gradients):
        assert torch.allclose(torch.tensor(first + second), torch.tensor(true), rtol=1e-12)


def sums() -> tuple[float, float]:
    x = torch.tensor([1.0 + torch.distributed.get_rank()], requires_grad=True)
    total = sum_over_ranks(x * x)
    total.backward()
    assert x.grad is not None
    return total.item(), x.grad.item()


def test_sum_over_ranks() -> None:
    # Both ranks use the sum 1 + 4, so the gradient of the first use reaches a rank's value twice.
    assert run(2, sums) == [(5.0, 4.0), (5.0, 8.0)]
