"""Batches that next() takes of an iterator of a loader are followed."""

from __future__ import annotations

import ast

import pytest

from tests.codemods.facts.flow.followed import TRAINING, followed, reasons

LOOP = "    for x, y in train_loader:\n"
TAKEN = """\
    batches = iter(train_loader)
    for _ in range(8):
        x, y = next(batches)
"""


def test_the_loop_around_next_is_a_pass_over_the_loader() -> None:
    found = followed(TRAINING.replace(LOOP, TAKEN))
    assert found.problems == ()
    ((loop, loaders),) = found.found.by_next.loops.items()
    assert isinstance(loop, ast.For) and ast.unparse(loop.iter) == "range(8)"
    assert {found.status[each] for each in loaders} == {"training"}
    (passed,) = found.found.passes
    assert isinstance(passed.epochs, ast.For) and ast.unparse(passed.epochs.iter) == "range(2)"
    assert ast.unparse(passed.loop) == "batches = iter(train_loader)"


def test_a_loop_that_calls_what_takes_a_batch() -> None:
    taking = "def take():\n    return next(batches)\nbatches = iter(train_loader)\n"
    found = followed(taking + TRAINING.replace(LOOP, "    for _ in range(4):\n        x, y = take()\n"))
    (loop,) = found.found.by_next.loops
    assert isinstance(loop, ast.For) and ast.unparse(loop.iter) == "range(4)"


@pytest.mark.parametrize("loop", [LOOP, "    for x, y in iter(train_loader):\n"])
def test_a_loop_over_batches_takes_none_by_next(loop: str) -> None:
    assert not followed(TRAINING.replace(LOOP, loop)).found.by_next.loops


def test_the_batches_of_an_evaluation_are_not_divided() -> None:
    taken = "batches = iter(test_loader)\nwith torch.no_grad():\n    for _ in range(4):\n        x, y = next(batches)\n"
    added = taken + "        total += F.cross_entropy(model(x), y).item()\nprint(total)\n"
    found = followed(TRAINING + added)
    calls = [(loader.call, status) for loader, status in found.status.items()]
    by_name = {ast.unparse(call.args[0]): status for call, status in calls if isinstance(call, ast.Call)}
    assert by_name == {"train_set": "training", "test_set": "whole"}
    assert reasons(TRAINING + added) == []
