"""Samplers of ddpify_runtime that are named where a loader is made."""

from __future__ import annotations

import ast

import pytest
from ddpify_codemods.named_samplers import makes_sampler, named_sampler

NAMES = {"DistributedSampler": "DistributedSampler"}


def call(source: str) -> ast.Call:
    node = ast.parse(source, mode="eval").body
    assert isinstance(node, ast.Call)
    return node


@pytest.mark.parametrize(
    ("arguments", "shuffle"),
    [
        ("data, shuffle=True", "True"),
        ("data, shuffle=args.s", "args.s"),
        ("data, shuffle=False", None),
        ("data", "True"),
    ],
)
def test_what_a_sampler_stands_for(arguments: str, shuffle: str | None) -> None:
    found = named_sampler(call(f"DataLoader(data, sampler=DistributedSampler({arguments}))"), NAMES)
    assert found is not None and found.dataset is not None and ast.unparse(found.dataset) == "data"
    assert (found.shuffle and ast.unparse(found.shuffle)) == shuffle
    assert found.named_here is None


def test_a_data_set_that_got_its_name_there() -> None:
    found = named_sampler(call("DataLoader(d := Data(), sampler=DistributedSampler(d, shuffle=True))"), NAMES)
    assert found is not None and found.named_here is not None


def test_other_samplers_are_the_scripts_own() -> None:
    assert named_sampler(call("DataLoader(data, sampler=DistributedSampler(data))"), {}) is None
    assert named_sampler(call("DataLoader(data, sampler=mine)"), NAMES) is None
    assert not makes_sampler(call("DistributedSampler()"), NAMES)
