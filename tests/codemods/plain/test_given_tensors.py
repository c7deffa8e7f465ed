"""Tensors that functions are given and change, and what `setdefault` puts into a dict, in the plain style: the caller's
are not seen to change, so no rank may have a part of an evaluation alone."""

from __future__ import annotations

import pytest

from tests.codemods.plain.test_followed import HEAD, LOOP, notes, plain, refusals

TRAINING = LOOP.format(loss="F.cross_entropy(model(x), y)", step="optimizer.step()")
EVALUATION = """\
matrix, log = torch.zeros(3, 3), {{}}
for x, y in test_loader:
    out = model(x)
    {adds}
print(matrix, log)
"""
FUNCTIONS = """\
def place(m, t, p):
    for i, j in zip(t.tolist(), p.tolist()):
        m[i, j] += 1


def add(m, t, p):
    m += torch.bincount(t * 3 + p, minlength=9).view(3, 3)


def back(m, t, p):
    m += torch.bincount(t * 3 + p, minlength=9).view(3, 3)
    return m


def number(n, t, p):
    n += (t == p).sum().item()


"""


def evaluated(adds: str) -> str:
    """A script that trains, and then evaluates."""
    return HEAD + FUNCTIONS + TRAINING + EVALUATION.format(adds=adds)


@pytest.mark.parametrize(
    "adds",
    [
        "place(matrix, y, out.argmax(1))",
        "add(matrix, y, out.argmax(1))",
        "back(matrix, y, out.argmax(1))",
        "other = back(matrix, y, out.argmax(1))",
        'entry = log.setdefault(epoch, {"hits": 0})\n    entry["hits"] += (out.argmax(1) == y).sum().item()',
        'entry = log.setdefault("all", [0, 0])\n    entry[0] += (out.argmax(1) == y).sum().item()',
    ],
)
def test_an_evaluation_is_whole(adds: str) -> None:
    result = plain(evaluated(adds))
    assert any("every rank evaluates all of it" in each for each in notes(result)) and not refusals(result)


@pytest.mark.parametrize(
    "adds",
    [
        "matrix = back(matrix, y, out.argmax(1))",
        "matrix += torch.bincount(y * 3 + out.argmax(1), minlength=9).view(3, 3)",
        "number(0, y, out.argmax(1))\n    matrix[0, 0] += (out.argmax(1) == y).sum()",
    ],
)
def test_an_evaluation_is_divided(adds: str) -> None:
    result = plain(evaluated(adds))
    assert not notes(result) and not refusals(result) and "sum_over_ranks(matrix)" in result.code


@pytest.mark.parametrize(
    "adds", ["add(matrix, y, model(x).argmax(1))", 'log.setdefault(0, {"n": 0})["n"] += loss.item()']
)
def test_a_training_is_refused(adds: str) -> None:
    made = "matrix, log = torch.zeros(3, 3), {}\n"
    step = f"optimizer.step()\n        {adds}"
    result = plain(
        HEAD + FUNCTIONS + made + LOOP.format(loss="F.cross_entropy(model(x), y)", step=step) + "print(matrix, log)\n"
    )
    assert refusals(result)
