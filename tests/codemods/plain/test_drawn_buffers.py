"""Buffers that a model draws when it is made: its wrapper sends those of rank 0, unless it keeps buffers."""

from __future__ import annotations

import pytest

from tests.codemods.plain.test_followed import plain, refusals

PROGRAM = """\
import torch
import torch.nn.functional as F
from torch.utils.data import DataLoader, TensorDataset

torch.manual_seed(0)
train_set = TensorDataset(torch.rand(65, 4), torch.randint(3, (65,)))


class Net(torch.nn.Module):
    def __init__(self):
        super().__init__()
        {buffer}
        self.drop = torch.nn.Dropout(0.5)
        self.out = torch.nn.Linear(16, 3)

    def forward(self, x):
        return self.out(self.drop(torch.cos(x @ self.features)))


def fit(model, loader):
    optimizer = torch.optim.SGD(model.parameters(), lr=0.1)
    for x, y in loader:
        loss = {loss}
        optimizer.zero_grad()
        loss.backward()
        optimizer.step()


loader = DataLoader(train_set, batch_size=6, shuffle=True)
{runs}
"""
ONCE = "F.cross_entropy(model(x), y)"
TWICE = f"{ONCE} + F.cross_entropy(model(x + 0.1), y)"
FIT = "model = Net()\nfit(model, loader)"
DRAWN = ['self.register_buffer("features", torch.randn(4, 16))', "self.features = torch.nn.Buffer(torch.randn(4, 16))"]


@pytest.mark.parametrize("buffer", DRAWN)
def test_buffers_that_no_wrapper_sends_are_refused(buffer: str) -> None:
    found = refusals(plain(PROGRAM.format(buffer=buffer, loss=TWICE, runs=f"{FIT}\n{FIT}")))
    assert any("a buffer is drawn here" in str(each) for each in found)


@pytest.mark.parametrize(
    ("buffer", "loss", "runs"),
    [
        (DRAWN[0], ONCE, f"{FIT}\n{FIT}"),  # sent from rank 0
        (DRAWN[0], TWICE, FIT),  # drawn alike
        (DRAWN[0].replace("randn", "ones"), TWICE, f"{FIT}\n{FIT}"),
    ],
)
def test_others_are_divided(buffer: str, loss: str, runs: str) -> None:
    code = plain(PROGRAM.format(buffer=buffer, loss=loss, runs=runs)).code
    assert ("broadcast_buffers=False" in code) is (loss == TWICE) and "DistributedDataParallel(" in code
