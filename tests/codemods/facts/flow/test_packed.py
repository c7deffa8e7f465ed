"""What is made of packed sequences is as long as the longest of a rank's samples, unless it is told a length."""

from __future__ import annotations

import pytest

from tests.codemods.plain.test_followed import plain, refusals

PROGRAM = """\
import torch
import torch.nn as nn
import torch.nn.functional as F
from torch.nn.utils.rnn import pack_padded_sequence, pad_packed_sequence
from torch.utils.data import DataLoader, TensorDataset


class Net(nn.Module):
    def __init__(self):
        super().__init__()
        self.rnn, self.out = nn.GRU(8, 16, batch_first=True), nn.Linear(16, 2)

    def forward(self, x, lengths):
        packed = pack_padded_sequence(x, lengths, batch_first=True, enforce_sorted=False)
        packed, hidden = self.rnn(packed)
        {}


model = Net()
optimizer = torch.optim.SGD(model.parameters(), lr=0.1)
data = TensorDataset(torch.randn(48, 9, 8), torch.randint(1, 9, (48,)), torch.randint(2, (48,)))
for x, lengths, y in DataLoader(data, batch_size=12, shuffle=True):
    loss = F.cross_entropy(model(x, lengths), y)
    optimizer.zero_grad()
    loss.backward()
    optimizer.step()
"""
PADS = "outputs, _ = pad_packed_sequence(packed, batch_first=True)\n        "


@pytest.mark.parametrize(
    "body",
    [
        "return self.out(hidden[-1])",
        PADS + "return self.out(hidden[-1])",
        PADS + "return self.out(outputs[torch.arange(len(x)), lengths - 1])",
        PADS.replace(")\n", ", total_length=x.size(1))\n") + "return self.out(outputs.mean(1))",
    ],
)
def test_what_is_of_each_sample(body: str) -> None:
    assert not refusals(plain(PROGRAM.format(body)))


@pytest.mark.parametrize(
    "body",
    [
        PADS + "return self.out(outputs.mean(1))",
        PADS + "return self.out(outputs)[:, -1]",
        "return self.out(pad_packed_sequence(packed, batch_first=True)[0].max(1)[0])",
    ],
)
def test_what_depends_on_the_longest(body: str) -> None:
    (problem, *_) = refusals(plain(PROGRAM.format(body)))
    assert "as long as the longest of a rank's samples" in problem
