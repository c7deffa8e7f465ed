"""What a forward leaves of its samples outside of itself is that of the whole batch, on every rank."""

from __future__ import annotations

import gc
from functools import lru_cache
from typing import Any

import pytest
import torch
import torch.nn.functional as F
from ddpify_runtime import DataLoader, DistributedDataParallel
from ddpify_runtime.trial import outliving
from torch import Tensor, nn

from tests.runtime.processes import run

LEFT: list[Tensor] = []
BY_SHAPE: dict[Any, Tensor] = {}
ROWS: list[int] = []
WHERE = [
    "a global list",
    "one that it empties",
    "the class",
    "itself",
    "a constant",
    "a cache",
    "a cache and a global list",
]


class Net(nn.Module):
    last: Tensor

    def __init__(self, where: str) -> None:
        super().__init__()
        self.first, self.second, self.where, self.me = nn.Linear(6, 4), nn.Linear(4, 6), where, self.forward

    def forward(self, x: Tensor) -> Tensor:
        ROWS.append(len(x))
        h = torch.tanh(self.first(x))
        if self.where == "a global list":
            LEFT.append(h)
        elif self.where == "one that it empties":
            LEFT.clear()
            LEFT.append(h)
        elif self.where == "the class":
            Net.last = h
        elif self.where == "itself":
            self.mine = h
        elif self.where == "a constant":
            BY_SHAPE.setdefault(x.shape[1:], torch.ones(4, dtype=x.dtype) / 4)
            h = h * BY_SHAPE[x.shape[1:]]
        elif self.where.startswith("a cache"):
            mask = doubled((x.sum(1, keepdim=True) > 0).double(), 1)
            h = h * mask
            if self.where == "a cache and a global list":
                LEFT.append(mask[:, 0] * 1 if len(LEFT) else mask)
        out: Tensor = self.second(h)
        return out


@lru_cache(maxsize=1)
def doubled(x: Tensor, times: int) -> Tensor:
    return (x[None] * 2 * times)[0]


def trained(where: str) -> tuple[list[float], int, int]:
    """The parameters, the rows of the last step, and how many a batch has."""
    gc.unfreeze()  # caches that tests were collected with are looked through, too
    torch.manual_seed(0)
    model: Any = Net(where).double()
    data = [(torch.randn(6, dtype=torch.float64), 0) for _ in range(45)]
    loader: Any = DataLoader(data, 8, shuffle=True)  # type: ignore[arg-type]
    model = DistributedDataParallel(model)
    optimizer = torch.optim.SGD(model.parameters(), 0.1)
    for x, _ in loader:
        ROWS.clear()
        loss = F.mse_loss(model(x), x)
        if where == "a cache and a global list":
            loss = loss + LEFT[0].mean() * model.first.weight.pow(2).sum()
            LEFT.clear()
        if where in ("a global list", "one that it empties"):
            loss = loss + LEFT[0].pow(2).mean()
            assert len(LEFT) == 1
            LEFT.clear()
        elif where in ("the class", "itself"):
            loss = loss + (Net.last if where == "the class" else model.mine).pow(2).mean()
        optimizer.zero_grad()
        loss.backward()
        optimizer.step()
    return [float(p.detach().sum()) for p in model.parameters()], ROWS[-1], len(x)


@pytest.mark.parametrize("where", WHERE)
@pytest.mark.filterwarnings("ignore")
def test_what_is_left_outside(where: str) -> None:
    [(parameters, _, _)] = run(1, trained, where)
    for ranks in (2, 3):
        for found, rows, batch in run(ranks, trained, where):
            torch.testing.assert_close(found, parameters, rtol=1e-9, atol=1e-12)
            assert (rows == batch) is (where not in ("a constant", "itself", "a cache"))


def test_what_nobody_holds_is_not_left() -> None:
    held, gone = torch.ones(2), torch.ones(3)
    noted = outliving.noted([gone])
    assert outliving.is_left([*noted, *outliving.noted([held])])
    del gone
    assert not outliving.is_left(noted)
