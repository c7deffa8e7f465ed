"""A count that is divided gives the number of one process, to the last bit: `if accuracy > best` decides by it (E5)."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import pytest
import torch
import torch.distributed as dist
import torch.nn.functional as F
from ddpify_runtime import DistributedDataParallel
from ddpify_runtime.lazy.partial import partial
from torch import Tensor, nn

from tests.runtime.processes import run

SIZES = (37, 501, 1003)


def rates() -> list[bool]:
    """For hits that the ranks share in every way, whether their rates are those of one process."""
    same = []
    rank, world_size = dist.get_rank(), dist.get_world_size()
    for size in SIZES:
        hits = torch.tensor(float(size // 3 * 2))
        for others in range(0, int(hits), 17):
            mine = others if rank else int(hits) - others * (world_size - 1)
            count: Tensor = partial(torch.tensor(float(mine)), None, ())
            same += [
                (count / size).item() == (hits / size).item(),
                (100.0 * count / size).item() == (100.0 * hits / size).item(),
                (count / size + count / size).item() == (hits / size + hits / size).item(),
            ]
    return same


def test_equal_counts_are_equal_rates() -> None:
    for found in run(3, rates):
        assert len(found) > 100 and all(found)


def sums() -> list[list[float]]:
    """Sums of losses of a divided forward and of numbers that all ranks have, and their gradients."""
    torch.manual_seed(0)
    model = DistributedDataParallel(nn.Linear(4, 4))
    scale = nn.Parameter(torch.tensor(0.5))
    x, y = torch.randn(8, 4), torch.randn(8, 4)
    found = []
    combinations: list[Callable[[Any, Any, Any], Any]] = [
        lambda one, other, penalty: one + (other + penalty),
        lambda one, other, penalty: (other + penalty) + one,
        lambda one, other, penalty: one - (other - penalty),
        lambda one, other, penalty: scale + one,
        lambda one, other, penalty: (one + penalty) + (other + scale),
    ]
    for combined in combinations:
        model.zero_grad()
        scale.grad = None
        out = model(x)
        penalty = 0.1 * model.weight.square().sum()
        loss = combined(F.mse_loss(out, y), F.l1_loss(out, y), penalty)
        running = F.mse_loss(out, y).detach()
        running += loss.detach()
        loss.backward()
        with torch.no_grad():
            scale.add_(1.0)  # before the loss is read
        gradient = model.weight.grad
        assert gradient is not None
        found.append([loss.item(), running.item(), gradient.norm().item(), float(scale.grad or 0.0)])
    return found


def test_sums_keep_what_all_ranks_have() -> None:
    (alone,) = run(1, sums)
    for found in run(3, sums):
        assert [number for line in found for number in line] == pytest.approx(
            [number for line in alone for number in line], rel=1e-5
        )


def views() -> list[float]:
    """A view of a view of a loss, which is changed in place afterwards."""
    torch.manual_seed(0)
    model, x = DistributedDataParallel(nn.Linear(4, 4)), torch.randn(8, 4)
    loss = F.mse_loss(model(x), x)
    view = loss.detach().data
    loss *= 2
    return [view.item(), (view + 1).item(), loss.item()]


def test_a_view_of_a_view_follows_a_change() -> None:
    (alone,) = run(1, views)
    assert run(2, views) == [pytest.approx(alone, rel=1e-5)] * 2
