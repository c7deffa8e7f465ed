"""Comparisons: of samples, of numbers that all ranks have to agree on, of the size of a batch."""

from __future__ import annotations

import ast

import pytest
from ddpify_codemods.facts.flow.comparisons import batch_sizes
from ddpify_codemods.facts.flow.values import Loader

from tests.codemods.checks import node_of, script_of
from tests.codemods.facts.flow.followed import TRAINING, followed, of_evaluation


@pytest.mark.parametrize(
    ("call", "sizes"),
    [
        ("DataLoader(d, 4)", ["4"]),
        ("DataLoader(d, batch_size=n)", ["n"]),
        ("DataLoader(d, **options)", ["m"]),
        ("DataLoader(d)", []),
    ],
)
def test_the_batch_size_of_a_loader(call: str, sizes: list[str]) -> None:
    script = script_of(f"options = dict(batch_size=m)\nloader = {call}")
    loader = Loader(node_of(script, call), script)
    assert [ast.unparse(size) for size in batch_sizes(loader)] == sizes


def test_samples_are_compared_by_themselves() -> None:
    assert "sharded" in of_evaluation("total += (model(x).argmax(1) == y).sum().item()").status.values()


def test_a_number_of_a_ranks_samples_is_agreed_on() -> None:
    found = followed(f"{TRAINING}        if loss.item() > 3:\n            print('large')\n")
    assert found.problems == () and found.found.reductions
