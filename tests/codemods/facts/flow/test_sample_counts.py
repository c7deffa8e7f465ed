"""Loops that count samples of a batch for which something holds: each rank counts its own, and all are added up."""

from __future__ import annotations

import textwrap

import pytest

from tests.codemods.facts.flow.followed import TRAINING, reasons

BEGIN = """\
seen, weights, limit = [], torch.ones(8), 0.5
hits = 0
"""
ADDS = TRAINING.replace("loss = F.cross_entropy(model(x), y)", "out = model(x)\n        loss = F.cross_entropy(out, y)")
ALL = "for i in range(len(y)):\n"


def counted(source: str) -> list[str]:
    """Why what a program counts in each batch of training cannot be added up."""
    return reasons(BEGIN + ADDS + textwrap.indent(source, "        ") + "print(hits)\n")


@pytest.mark.parametrize(
    "source",
    [
        f"{ALL}    if out[i].argmax() == y[i]:\n        hits += 1\n",
        f"{ALL}    if torch.argmax(out[i]).item() == int(y[i]):\n        hits += 1\n    else:\n        hits -= 2\n",
        f"{ALL}    if out[i, 0] > limit and y[i] == 0:\n        hits += 1\n    elif y[i] == 1:\n        hits += 0.5\n",
        "for i in range(y.size(0)):\n    if out[i].max() > 0 or y[i] != 2:\n        hits += 1\n",
        "for o, t in zip(out.argmax(1), y):\n    if o == t:\n        hits += 1\n",
        "for o in out:\n    if o.max().item() > limit:\n        hits += 1\n",
        f"pred = out.argmax(1)\n{ALL}    if epoch > 0:\n        if pred[i] == y[i]:\n            hits += 1\n",
    ],
)
def test_samples_are_counted_by_each_rank(source: str) -> None:
    assert not counted(source)


@pytest.mark.parametrize(
    "test",
    [
        "i == 0",
        "out[i].argmax() == y[i] and i < 3",
        "out[i].argmax() == y[0]",
        "out[i].argmax() == y[i - 1]",
        "out[i].max() > weights[i]",
        "out[i].max() > out.max()",
        "out[i].max() > loss.item()",
        "out[i].max() * 8 > len(y)",
        "out[i].argmax() == y[i] and hits < 5",
        "y[i].item() not in seen",
        "out[i].argmax() == y[i] and torch.rand(1).item() < 0.5",
        "y.repeat_interleave(2)[i] == y[i]",
        "out.flatten()[i] > 0",
    ],
)
def test_what_is_of_other_samples_does_not_count(test: str) -> None:
    assert counted(f"{ALL}    if {test}:\n        hits += 1\n")


@pytest.mark.parametrize(
    "source",
    [
        f"{ALL}    if out[i].argmax() != y[i]:\n        hits += 1\n        break\n",
        f"{ALL}    if out[i].argmax() != y[i]:\n        continue\n    hits += 1\n",
        f"{ALL}    if out[i].argmax() == y[i]:\n        hits += 1\n    else:\n        hits = 0\n",
        f"{ALL}    if out[i].argmax() == y[i]:\n        hits *= 2\n",
        f"{ALL}    if out[i].argmax() == y[i]:\n        hits += i\n",
        f"{ALL}    if out[i].argmax() == y[i]:\n        hits += 1\n    seen.append(hits)\n",
        f"{ALL}    if out[i].argmax() == y[i]:\n        hits += 1\nelse:\n    hits += 1\n",
        f"twice = y.repeat_interleave(2)\n{ALL}    if out[i].argmax() == twice[i]:\n        hits += 1\n",
        f"other = y.flip(0)\n{ALL}    if out[i].argmax() == other[i]:\n        hits += 1\n",
        f"flat = out.flatten()\n{ALL}    if flat[i] > 0:\n        hits += 1\n",
        f"number = torch.zeros(1)\n{ALL}    if out[i].argmax() == y[i]:\n        number += 1\nhits += number.item()\n",
        "for i in range(len(y) - 1):\n    if out[i].argmax() == y[i]:\n        hits += 1\n",
        "for i in range(1, len(y)):\n    if out[i].argmax() == y[i]:\n        hits += 1\n",
        "for o, w in zip(out, weights):\n    if o.max() > w:\n        hits += 1\n",
        "for o, t in zip(out[1:], y):\n    if o.argmax() == t:\n        hits += 1\n",
    ],
)
def test_loops_that_do_something_else_are_refused(source: str) -> None:
    assert counted(source)
