"""Loops over one loader of an evaluation, of which some can be divided."""

from __future__ import annotations

import ast

import pytest

from .followed import TRAINING, followed

COUNTS = """\
for x, y in test_loader:
    total += (model(x).argmax(1) == y).sum().item()
print(total)
"""
LEFT = "for x, y in {}:\n    print(model(x))\n    break\n"


def taken_whole(after: str) -> tuple[set[str], set[str]]:
    """What takes the batches of all ranks, and how loaders of evaluations are divided that are written in a program."""
    known = followed(TRAINING + after)
    statuses = {status for loader, status in known.status.items() if loader.source is None and status != "training"}
    return {ast.unparse(node) for node in known.evaluated}, statuses


@pytest.mark.parametrize(
    "looks",
    [
        "x, y = next(iter(test_loader))\nprint(y)\n",
        "batches = iter(test_loader)\nx, y = next(batches)\nprint(model(x))\n",
        LEFT.format("test_loader"),
        "from somewhere import report\nreport(model, test_loader)\n",
    ],
)
@pytest.mark.parametrize("is_first", [True, False])
def test_a_look_beside_an_evaluation(looks: str, is_first: bool) -> None:
    assert taken_whole(looks + COUNTS if is_first else COUNTS + looks) == ({"test_loader"}, {"batches"})


def test_an_entry_of_a_dictionary() -> None:
    after = "loaders = {'test': test_loader}\n" + COUNTS + LEFT.format("loaders['test']")
    assert taken_whole(after) == ({"loaders['test']"}, {"batches"})


def test_a_loader_that_is_only_looked_at_is_whole() -> None:
    assert taken_whole(LEFT.format("test_loader")) == (set(), {"whole"})
    assert taken_whole(2 * LEFT.format("test_loader")) == (set(), {"whole"})


def test_loops_that_can_all_be_divided_share_the_loader() -> None:
    assert taken_whole(COUNTS + "total = 0\n" + COUNTS) == (set(), {"sharded"})


def test_a_function_that_gets_the_loader() -> None:
    """What is wrong with one call is wrong with the other."""
    function = "def look(loader):\n    for x, y in loader:\n        print(model(x))\n        return\n"
    assert taken_whole(function + "look(test_loader)\nlook(test_loader)\n") == (set(), {"whole"})
    assert taken_whole(function + "look(test_loader)\n" + COUNTS) == ({"loader"}, {"batches"})


def test_a_function_that_gets_something_else_too() -> None:
    function = "def look(batches):\n    for x, y in batches:\n        print(model(x))\n        return\n"
    after = function + "look(test_loader)\nlook([(torch.rand(2, 4), 0)])\n" + COUNTS
    assert taken_whole(after) == ({"test_loader"}, {"batches"})
    of_training = after.replace("look(test_loader)", "look(train_loader)")
    assert taken_whole(of_training) == ({"train_loader"}, {"sharded"})
