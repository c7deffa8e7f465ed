"""Where numbers of a rank's samples are read, they are brought together first."""

from __future__ import annotations

import ast

import pytest

from tests.codemods.facts.flow.followed import TRAINING, followed


@pytest.mark.parametrize(
    "line", ["print(loss.item())", "print(f'{loss:.3f}')", "history = [float(loss)]\n        print(history)"]
)
def test_a_loss_that_is_read_is_reduced(line: str) -> None:
    found = followed(f"{TRAINING}        {line}\n")
    assert found.problems == ()
    assert found.found.reductions or found.found.after


def test_what_nobody_reads_is_not() -> None:
    found = followed(TRAINING).found
    assert not found.reductions and not found.after


def test_a_sum_over_a_loop_is_reduced_behind_it() -> None:
    found = followed(f"{TRAINING}        total += loss.item()\nprint(total)").found
    assert {each.name for each in found.after} == {"total"}
    assert all(isinstance(each.at, ast.For) for each in found.after)
