"""Loops over batches are followed: as they are, counted, zipped, in bars, by hand."""

from __future__ import annotations

import ast

import pytest

from tests.codemods.facts.flow.followed import TRAINING, followed, reasons, undivided
from tests.codemods.plain.test_followed import plain, refusals, training

LOOP = "    for x, y in train_loader:"


@pytest.mark.parametrize(
    "loop",
    [
        LOOP,
        "    for i, (x, y) in enumerate(train_loader):",
        "    for (x, y), _ in zip(train_loader, range(9)):",
    ],
)
def test_each_way_to_run_over_a_loader(loop: str) -> None:
    assert reasons(TRAINING.replace(LOOP, loop)) == []


def test_a_loop_that_stops_on_what_a_rank_sees_is_decided_together() -> None:
    found = followed(TRAINING + "        if loss > 3:\n            break\n").found
    assert {ast.unparse(each.node) for together in found.reductions.values() for each in together} == {"loss"}


EACH = "F.mse_loss(each, each * 2)"


@pytest.mark.parametrize(
    "loss",
    [
        f"loss = 0.0\n        for each in outputs: loss += {EACH}",
        f"losses = []\n        for each in outputs: losses.append({EACH})\n        loss = sum(losses)",
    ],
)
def test_a_loop_over_samples_or_over_tensors(loss: str) -> None:
    """A loss of each of several outputs is a mean in each turn; one of each sample is a part of a sum over all."""
    source = training("0.0").replace("loss = 0.0", f"outputs = model(x)\n        {loss}")
    source = "import library\n" + source.replace("model = nn.Linear(4, 3)", "model = library.Net()")
    assert refusals(plain(source))
    assert not refusals(plain(source.replace("model(x)", "model(x); print(outputs.shape)")))


DEEP = """\
class Deep(nn.Module):
    def __init__(self, deep):
        super().__init__()
        self.first, self.second, self.deep = nn.Linear(4, 3), nn.Linear(4, 3), deep

    def forward(self, x):
        if self.deep:
            return [self.first(x), self.second(x)]
        return self.first(x) + self.second(x)


import sys
deep = "deep" in sys.argv
model = Deep(deep)
optimizer = torch.optim.SGD(model.parameters(), lr=0.1)
for x, y in train_loader:
    outputs = model(x)
    loss = 0
    for out in outputs:
        {adds}
    loss = loss / len(outputs)
    loss.backward()
    optimizer.step()
"""


def test_each_output_is_compared_with_the_whole_batch() -> None:
    """The model is seen to give back a list, or a tensor; each out of it meets the labels of all samples."""
    assert undivided(DEEP.format(adds="loss = loss + F.cross_entropy(out, y)")) == []


@pytest.mark.parametrize("adds", ["loss = loss + out.mean()", "loss = loss + F.mse_loss(out, outputs)"])
def test_each_output_may_be_that_of_a_sample(adds: str) -> None:
    assert undivided(DEEP.format(adds=adds)) != []
