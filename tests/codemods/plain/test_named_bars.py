"""Bars over loaders that have a name: how many batches they show."""

from __future__ import annotations

from tests.codemods.plain.test_followed import notes, plain

MEASURES = """\
loader = DataLoader(dataset, batch_size=8, shuffle=True)
for epoch in range(2):
    for x, y in tqdm(loader):
        loss = F.mse_loss(model(x), y)
        optimizer.zero_grad()
        loss.backward()
        optimizer.step()
total = 0
bar = tqdm({})
for {} in bar:
    total += F.mse_loss(model(x), y).item()
"""
HEAD = """\
import torch
import torch.nn.functional as F
from torch.utils.data import DataLoader, TensorDataset
from tqdm import tqdm

torch.manual_seed(0)
dataset = TensorDataset(torch.rand(64, 4), torch.rand(64, 1))
test_loader = DataLoader(dataset, batch_size=10)
model = torch.nn.Linear(4, 1)
optimizer = torch.optim.SGD(model.parameters(), lr=0.1)
"""


def measured(shows: str, over: str = "test_loader", each: str = "x, y") -> str:
    """A script that trains, and then evaluates over a bar."""
    return HEAD + MEASURES.format(over, each) + f"print({shows})\n"


def test_the_length_of_a_bar_is_that_of_all_ranks() -> None:
    code = plain(measured("total / len(bar)")).code
    assert "total / sum_over_ranks(len(bar))" in code and "sampler=[i for i" in code
    code = plain(measured("total / len(bar)", "enumerate(test_loader), total=len(test_loader)", "i, (x, y)")).code
    assert "total=sum_over_ranks(len(test_loader))" in code and "total / len(bar)" in code


def test_an_evaluation_whose_bar_is_asked_how_far_it_is_is_whole() -> None:
    result = plain(measured("total / bar.total"))
    assert "sampler=[i for i" not in result.code and any("every rank evaluates" in each for each in notes(result))
