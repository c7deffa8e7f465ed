"""Bars over loaders that have a name: how many batches they show, and which sampler is told the epoch below one."""

from __future__ import annotations

import pytest

from tests.codemods.plain.test_followed import notes, plain, refusals

EPOCHS = """\
def show(epochs, loader):
    for epoch in range(epochs):
        loader = {bar}
        for x, y in loader:
            loss = F.mse_loss(model(x), y)
            optimizer.zero_grad()
            loss.backward()
            optimizer.step()
"""
MEASURES = """\
show(2, {})
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


def shown(call: str, bar: str = "tqdm(loader)") -> str:
    """A script whose bar gets the name of the loader."""
    return HEAD + EPOCHS.format(bar=bar) + call.format("DataLoader(dataset, batch_size=8, shuffle=True)")


def measured(shows: str, over: str = "test_loader", each: str = "x, y") -> str:
    """The same, which then evaluates over a bar."""
    return shown(MEASURES.format("{}", over, each) + f"print({shows})\n")


def test_the_sampler_is_named_above_the_epochs() -> None:
    code = plain(shown("show(2, {})\n")).code
    above = "    loader_sampler = loader.sampler\n    for epoch in range(epochs):\n"
    assert above + "        loader_sampler.set_epoch(epoch)\n" in code


@pytest.mark.parametrize(
    ("call", "bar"),
    [
        ("show(2, tqdm({}))\n", "tqdm(loader)"),
        ("show(2, {})\n", "tqdm(loader) if epoch else tqdm(loader, ncols=80)"),
    ],
)
def test_a_bar_has_no_sampler(call: str, bar: str) -> None:
    assert any("cannot be told the epoch" in each for each in refusals(plain(shown(call, bar))))


def test_the_length_of_a_bar_is_that_of_all_ranks() -> None:
    code = plain(measured("total / len(bar)")).code
    assert "total / sum_over_ranks(len(bar))" in code and "sampler=[i for i" in code
    code = plain(measured("total / len(bar)", "enumerate(test_loader), total=len(test_loader)", "i, (x, y)")).code
    assert "total=sum_over_ranks(len(test_loader))" in code and "total / len(bar)" in code


def test_an_evaluation_whose_bar_is_asked_how_far_it_is_is_whole() -> None:
    result = plain(measured("total / bar.total"))
    assert "sampler=[i for i" not in result.code and any("every rank evaluates" in each for each in notes(result))
