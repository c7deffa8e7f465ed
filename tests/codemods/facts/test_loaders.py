"""Loaders that are made in sight (D8, D10)."""

from __future__ import annotations

import ast

import pytest
from ddpify_codemods.facts.loaders import can_be_repeated, is_false, new_name, says_no_sampler, seen

from tests.codemods.checks import node_of, script_of

HEAD = "from torch.utils.data import DataLoader, IterableDataset\nclass Stream(IterableDataset): pass\n"


@pytest.mark.parametrize(
    ("call", "shown"),
    [
        ("DataLoader(data)", ("data", None, None)),
        ("DataLoader(data, 4, shuffle=True)", ("data", "True", None)),
        ("DataLoader(data, sampler=mine)", ("data", None, "mine")),
        ("DataLoader(data, shuffle=True, sampler=None)", ("data", "True", None)),
        ("DataLoader(data, 4, True, sampler=None)", None),
        ("DataLoader(data, batch_sampler=mine)", None),
        ("DataLoader(data, batch_size=None)", None),
        ("DataLoader(data, **options)", None),
        ("DataLoader(data, shuffle=True, **options)", ("data", "True", None)),
        ("DataLoader(Stream())", None),
    ],
)
def test_what_a_call_says(call: str, shown: tuple[str, str | None, str | None] | None) -> None:
    script = script_of(f"{HEAD}loader = {call}")
    found = seen(script, node_of(script, call))
    parts = found and tuple(each and ast.unparse(each) for each in (found.dataset, found.shuffle, found.sampler))
    assert parts == shown


@pytest.mark.parametrize(
    ("given", "answer"), [("sampler=None", True), ("sampler=mine", False), ("shuffle=None", False)]
)
def test_a_sampler_of_none(given: str, answer: bool) -> None:
    script = script_of(f"{HEAD}loader = DataLoader(data, {given})")
    assert says_no_sampler(node_of(script, f"DataLoader(data, {given})")) is answer


def test_the_order_is_that_of_the_data_set_unless_it_is_said() -> None:
    assert is_false(None) and is_false(ast.Constant(False)) and not is_false(ast.Name("shuffle"))


@pytest.mark.parametrize(
    ("source", "answer"), [("data", True), ("self.data", True), ("make()", False), ("sets[0]", True)]
)
def test_what_may_be_written_twice(source: str, answer: bool) -> None:
    script = script_of(f"sets = [1, 2]\nx = {source}")
    assert can_be_repeated(script, script.tree.body[1].value) is answer  # type: ignore[attr-defined]


def test_a_new_name_is_free() -> None:
    script = script_of(f"{HEAD}train_loader = DataLoader(make())")
    assert new_name(script, node_of(script, "DataLoader(make())")) == "train_set"
    script = script_of(f"{HEAD}train_set = 1\ntrain_loader = DataLoader(make())")
    assert new_name(script, node_of(script, "DataLoader(make())")) == "dataset"
    script = script_of(f"{HEAD}x = [y for y in DataLoader(make())]")
    assert new_name(script, node_of(script, "DataLoader(make())")) == ""
