"""Batches of training that next() takes."""

from __future__ import annotations

import pytest

from .test_followed import plain, refusals, training

LOOP = "    for x, y in train_loader:"
EPOCH = "train_loader.sampler.set_epoch(train_loader.sampler.epoch + 1)\n"
AGAIN = """\
    for step in range(20):
        try:
            x, y = {next}
        except StopIteration:
            batches = iter(train_loader)
            x, y = {next}"""


def taken(loop: str, step: str = "optimizer.step()", after: str = "") -> str:
    """A script that takes batches in another way."""
    return training(step=step, after=after).replace(LOOP, loop)


@pytest.mark.parametrize("following", ["next(batches)", "batches.__next__()"])
def test_an_iterator_that_is_made_in_each_epoch(following: str) -> None:
    loop = f"    batches = iter(train_loader)\n    for _ in range(8):\n        x, y = {following}"
    result = plain(taken(loop))
    assert not refusals(result)
    assert f"    {EPOCH}    batches = iter(train_loader)" in result.code
    assert "ddp_model(x)" in result.code


def test_an_iterator_that_is_made_anew_where_it_ends() -> None:
    source = taken(AGAIN.format(next="next(batches)")).replace(
        "for epoch", "batches = iter(train_loader)\nfor epoch", 1
    )
    result = plain(source)
    assert not refusals(result)
    assert result.code.count(EPOCH) == 1
    assert f"            {EPOCH}            batches = iter(train_loader)" in result.code


def test_an_iterator_of_an_object() -> None:
    source = """\
import torch
import torch.nn as nn
import torch.nn.functional as F
from torch.utils.data import DataLoader, TensorDataset


class Solver:
    def __init__(self, loader):
        self.loader = loader
        self.model = nn.Linear(4, 3)
        self.optimizer = torch.optim.SGD(self.model.parameters(), lr=0.1)

    def train(self, steps):
        batches = iter(self.loader)
        for step in range(steps):
            if (step + 1) % len(self.loader) == 0:
                batches = iter(self.loader)
            x, y = next(batches)
            loss = F.cross_entropy(self.model(x), y)
            self.optimizer.zero_grad()
            loss.backward()
            self.optimizer.step()
            if step % 4 == 0:
                print(step, loss.item())


data = TensorDataset(torch.rand(64, 4), torch.randint(3, (64,)))
Solver(DataLoader(data, batch_size=8, shuffle=True)).train(20)
"""
    result = plain(source)
    assert not refusals(result)
    assert "self.loader.sampler.set_epoch(self.loader.sampler.epoch + 1)" in result.code
    assert "mean_over_ranks(loss.item())" in result.code


def test_what_such_a_loop_adds_up_is_brought_together_after_it() -> None:
    loop = "    total = 0\n    batches = iter(train_loader)\n    for _ in range(8):\n        x, y = next(batches)"
    result = plain(taken(loop, step="optimizer.step(); total += len(x)", after="    print(total)\n"))
    assert not refusals(result)
    assert "    total = sum_over_ranks(total)" in result.code


def test_a_batch_that_is_only_looked_at_is_one_of_all_ranks() -> None:
    looks = "first = next(iter(train_loader))[0]\nprint(first.mean())\n"
    loop = "    batches = iter(train_loader)\n    for _ in range(8):\n        x, y = next(batches)"
    result = plain(taken(loop, after=looks))
    assert not refusals(result)
    assert "every_sample(train_loader)" in result.code


@pytest.mark.parametrize(
    "loop",
    [
        "    batches = iter(list(train_loader))\n    for _ in range(8):\n        x, y = next(batches)",
        "    batches = iter(DataLoader(train_set, batch_size=8))\n    for _ in range(8):\n        x, y = next(batches)",
        "    for _ in range(8):\n        x, y = next(batches)[0][:4], next(batches)[1][:4]",
    ],
)
def test_what_cannot_be_told_the_epoch_or_followed_is_refused(loop: str) -> None:
    source = taken(loop).replace("for epoch", "batches = iter(train_loader)\nfor epoch", 1)
    assert refusals(plain(source))


@pytest.mark.parametrize("shown", ["counts", "sorted(counts.items())", "max(counts.values())", "dict(counts)"])
def test_what_is_counted_by_the_samples_themselves_is_not_shown(shown: str) -> None:
    loop = "    for x, y in train_loader:\n        for t in y.tolist():\n            counts[t] = counts.get(t, 0) + 1"
    source = taken(loop, after=f"print({shown})\n").replace("for epoch", "counts = {}\nfor epoch", 1)
    assert refusals(plain(source))


@pytest.mark.parametrize(
    "after",
    [
        "torch.stack([out[i] for i in range(len(x))]).mean(0).pow(2).sum()",
        "sum((out[i] - out[i + 1]).pow(2).mean() for i in range(len(x) - 1))",
        "out[torch.arange(len(x) - 1, -1, -1)].pow(2).mean()",
    ],
)
def test_a_loop_over_the_places_of_samples_is_one_over_a_ranks_own(after: str) -> None:
    result = plain(training(f"F.cross_entropy(out := model(x), y) + {after}"))
    assert refusals(result) and "range(len(x) * dist" not in result.code


def test_hits_that_are_counted_place_by_place_are_no_samples_of_all_ranks() -> None:
    count = "hits = sum(1 for i in range(len(y)) if model(x)[i].argmax() == y[i])\n        print(hits / len(y))"
    assert refusals(plain(training(step=f"optimizer.step()\n        {count}")))


@pytest.mark.parametrize(("net", "refused"), [("nn.Sequential(nn.Linear(4, 3), nn.Dropout(0.5))", True), ("", False)])
@pytest.mark.parametrize("name", ["cycle", "chain"])
def test_a_loader_that_others_go_through_again_has_one_order_on_all_ranks(name: str, net: str, refused: bool) -> None:
    """Where ranks draw for themselves, each would go through all of it in an order of its own."""
    other = "import itertools\nother_loader = DataLoader(train_set, batch_size=8, shuffle=True)\nfor epoch"
    source = training().replace("nn.Linear(4, 3)", net or "nn.Linear(4, 3)", 1).replace("for epoch", other, 1)
    over = f"    for (x, y), (u, v) in zip(train_loader, itertools.{name}(other_loader)):"
    source = source.replace(LOOP, over).replace("F.cross_entropy(", "model(u).pow(2).mean() + F.cross_entropy(", 1)
    found = refusals(plain(source))
    assert any("of a loader that shuffles is not followed" in each for each in found) == refused
