"""Places that each rank draws for itself: what is taken from there, or put there, is another number on each."""

from __future__ import annotations

from pathlib import Path

import pytest
from ddpify_codemods import convert

PROGRAM = """\
import torch
import torch.nn as nn
import torch.nn.functional as F
from torch.utils.data import DataLoader, TensorDataset


class Net(nn.Module):
    def __init__(self):
        super().__init__()
        self.out, self.drop = nn.Linear(4, 3), nn.Dropout(0.5)

    def forward(self, x):
        {}
        return self.out(self.drop(x))


model = Net()
optimizer = torch.optim.SGD(model.parameters(), lr=0.1)
data = TensorDataset(torch.rand(48, 4), torch.randint(3, (48,)))
loader, best = DataLoader(data, batch_size=12, shuffle=True), 100.0
for epoch in range(9):
    losses = []
    model.train()
    for x, y in loader:
        loss = F.cross_entropy(model(x), y)
        optimizer.zero_grad()
        loss.backward()
        optimizer.step()
    model.eval()
    for x, y in DataLoader(data, batch_size=12, drop_last=True):
        losses.append(F.cross_entropy(model(x), y).item())
    if sum(losses) > best:
        break
    best = sum(losses)
"""


def plain(forward: str) -> str:
    path = Path("train.py")
    return convert({path: PROGRAM.format(forward.replace("\n", "\n        "))}, "cpu", style="plain")[path].code


@pytest.mark.parametrize(
    "forward",
    [
        "x = x[:, torch.randint(4, (4,))]",
        "x = x[:, torch.randperm(4)]",
        "at = torch.randint(3, (1,)).item()\nx = torch.cat([x[:, at : at + 1], x[:, 1:]], 1)",
        "x = x.clone()\nx[:, torch.randint(4, (1,))] = 0",
        "mask = torch.ones(4)\nmask[torch.randint(4, (1,))] = 0\nx = x * mask",
    ],
)
def test_a_decision_by_such_numbers_is_refused(forward: str) -> None:
    assert "DistributedDataParallel" not in plain(forward)


@pytest.mark.parametrize(
    "forward", ["x = x[:, torch.arange(4)]", "x = x.clone()\nx[:, 3] = 0", "x = x[:, [3, 2, 1, 0]]"]
)
def test_places_that_are_not_drawn_are_the_same_on_all(forward: str) -> None:
    assert "DistributedDataParallel" in plain(forward)
