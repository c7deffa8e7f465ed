"""Loops over batches are followed: as they are, counted, zipped, in bars, by hand."""

from __future__ import annotations

import ast

import pytest

from tests.codemods.facts.flow.followed import TRAINING, followed, reasons
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
