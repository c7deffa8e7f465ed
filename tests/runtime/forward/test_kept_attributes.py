"""What a forward keeps of its samples in attributes: each rank computes its rows, and whoever reads it gets all."""

from __future__ import annotations

import copy
import io
from typing import Any

import pytest
import torch
import torch.nn.functional as F
from ddpify_runtime import DataLoader, DistributedDataParallel, rank_zero_only
from torch import Tensor, nn

from tests.runtime.processes import run

ROWS: list[int] = []
CALLS: list[int] = []


class Attention(nn.Module):
    """Keeps its weights, in one of some ways."""

    weights: Any
    mean: Any

    def __init__(self, way: str) -> None:
        super().__init__()
        self.query, self.value, self.way = nn.Linear(6, 6), nn.Linear(6, 6), way
        self.weights = self.mean = None

    def forward(self, x: Tensor) -> Tensor:
        ROWS.append(len(x))
        weights = (self.query(x) @ x.transpose(1, 2)).softmax(-1)
        if self.way == "detached":
            self.weights = weights.detach()
        elif self.way == "in the second dimension":
            self.weights = weights.transpose(0, 1)
        elif self.way == "of all samples":
            self.weights = weights.mean(0)
        elif self.way == "a list":
            self.weights = [weights]
        elif self.way == "a number beside":
            self.weights, self.mean = weights, weights.square().mean()
        elif self.way == "sometimes":
            CALLS.append(0)
            if len(CALLS) % 5 != 2:
                self.weights = weights
        else:
            self.weights = weights
        out: Tensor = weights @ self.value(x)
        return out


class State(nn.Module):
    """Goes on with what it has kept, in one of some ways."""

    weights: Any

    def __init__(self, way: str) -> None:
        super().__init__()
        self.query, self.value, self.way, self.calls = nn.Linear(6, 6), nn.Linear(6, 6), way, 0
        self.weights = None

    def forward(self, x: Tensor) -> Tensor:
        ROWS.append(len(x))
        self.calls += 1
        weights = (self.query(x) @ x.transpose(1, 2)).softmax(-1)
        if self.way == "a state":
            if self.weights is not None and len(self.weights) == len(weights):
                weights = weights + 0.1 * self.weights
            self.weights = weights.detach()
        elif self.way == "a state under a guard":
            if isinstance(getattr(self, "weights", None), Tensor) and len(self.weights) == len(weights):
                weights = weights + 0.1 * self.weights
            self.weights = weights.detach()
        elif self.way == "a state from the first":
            self.weights = 0.5 * (torch.zeros_like(weights) if self.weights is None else self.weights[: len(x)])
            self.weights = self.weights[: len(x)].detach() + weights[: len(self.weights)].detach()
        elif self.way == "in place":
            self.weights = torch.zeros_like(weights) if self.weights is None else self.weights
            self.weights = self.weights if len(self.weights) == len(weights) else torch.zeros_like(weights)
            self.weights.copy_(weights.detach())
        elif self.calls % 3 or self.weights is None or len(self.weights) != len(weights):
            self.weights = weights.detach()
        out: Tensor = weights @ self.value(x)
        return out


class Computed(nn.Module):
    """Goes on with what it has kept, by a name that it computes."""

    def __init__(self, way: str) -> None:
        super().__init__()
        self.query, self.value, self.way = nn.Linear(6, 6), nn.Linear(6, 6), way

    def forward(self, x: Tensor) -> Tensor:
        ROWS.append(len(x))
        weights = (self.query(x) @ x.transpose(1, 2)).softmax(-1)
        before = getattr(self, self.way[2:7] + "s", None)
        if isinstance(before, Tensor) and len(before) == len(weights):
            weights = weights + 0.1 * before
        self.weights = self.states = weights.detach()
        out: Tensor = weights @ self.value(x)
        return out


class Net(nn.Module):
    last: Tensor | None

    def __init__(self, way: str) -> None:
        super().__init__()
        part = Computed if way == "a state by another name" else State if way in STATES else Attention
        self.parts, self.head, self.last = nn.ModuleList([part(way), part(way)]), nn.Linear(6, 2), None

    def forward(self, x: Tensor) -> Tensor:
        for part in self.parts:
            x = x + part(x)
        self.last = x
        out: Tensor = self.head(x.mean(1))
        return out


def read(weights: Any) -> Tensor:
    kept: Tensor = weights[0] if isinstance(weights, list) else weights
    return kept.square().mean() + kept[-1].sum()


def trained(way: str) -> tuple[list[float], list[float], int, int]:
    """The parameters, what was printed, the rows of the last training forward, and how many its batch had."""
    torch.manual_seed(0)
    model: Any = Net(way).double()
    data = [(torch.randn(4, 6, dtype=torch.float64), torch.tensor(i % 2)) for i in range(45)]
    loader: Any = DataLoader(data, 8, shuffle=True)  # type: ignore[arg-type]
    tests: Any = DataLoader(data[:21], 8)  # type: ignore[arg-type]
    model = DistributedDataParallel(model)
    optimizer = torch.optim.SGD(model.parameters(), 0.1)
    printed = []
    for _ in range(2):
        model.train()
        for x, y in loader:
            ROWS.clear()
            loss = F.cross_entropy(model(x), y)
            if way not in ("only kept", "sometimes"):
                loss = loss + 0.1 * read(model.parts[0].weights) + 0.01 * model.last.square().mean()
            if way == "a number beside":
                loss = loss + model.parts[1].mean
            rows = ROWS[-1]
            optimizer.zero_grad()
            loss.backward()
            optimizer.step()
            printed.append(loss.item())
        model.eval()
        with torch.no_grad():
            for x, _ in tests:
                printed.append(float(model(x).sum()) + float(read(model.parts[1].weights)))
                printed.append(float(model.last.mean()))
        rank_zero_only(torch.save)(model, io.BytesIO())
        again = copy.deepcopy(model)
        printed.append(float(read(again.parts[0].weights)))
        torch.save(model, file := io.BytesIO())
        file.seek(0)
        printed.append(float(read(torch.load(file, weights_only=False).parts[0].weights)))
    return [float(p.detach().sum()) for p in model.parameters()], printed, rows, len(y)


DIVIDED = ["as it is", "detached", "in the second dimension", "only kept", "a number beside"]
WHOLE = ["of all samples", "a list", "sometimes"]
STATES = [
    *("now and then", "a state", "a state by another name", "a state from the first", "a state under a guard"),
    "in place",
]


@pytest.mark.parametrize("way", [*DIVIDED, *WHOLE, *STATES])
@pytest.mark.filterwarnings("ignore")
def test_what_is_kept_is_that_of_all_samples(way: str) -> None:
    [(parameters, printed, _, _)] = run(1, trained, way)
    for ranks in (2, 3):
        for found in run(ranks, trained, way):
            torch.testing.assert_close(found[0], parameters, rtol=1e-9, atol=1e-12)
            torch.testing.assert_close(found[1], printed, rtol=1e-9, atol=1e-12)
            assert (found[2] < found[3]) is (way in DIVIDED), way
