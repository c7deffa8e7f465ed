"""Loaders whose one batch is all of a data set."""

from __future__ import annotations

import ast

import pytest
from ddpify_codemods.facts.whole_sets import counts_samples, is_whole_set

from tests.codemods.checks import script_of


def asked(code: str) -> tuple[bool, bool]:
    script = script_of(code)
    call = next(each for each in script.find(ast.Call) if ast.unparse(each.func) == "DataLoader")
    return is_whole_set(script, call.args[1], call.args[0]), counts_samples(script, call.args[1])


@pytest.mark.parametrize(
    ("lines", "whole", "counts"),
    [
        ("data = load()\nDataLoader(data, len(data))", True, True),
        ("data = load()\ndata = half(data)\nDataLoader(data, len(data))", True, True),
        ("data = load()\nn = len(data)\nDataLoader(data, n)", True, True),
        ("x = load()\ndata = TensorDataset(x, x)\nDataLoader(data, x.size(0))", True, True),
        ("data = load()\nn = len(data)\ndata = half(data)\nDataLoader(data, n)", False, True),
        ("data = load()\nDataLoader(data, len(other))", False, True),
        ("data = load()\nDataLoader(data, x.shape[1])", False, False),
        ("data = load()\nDataLoader(data, min(len(data), 64))", False, False),
        ("data = load()\nn = 8\nDataLoader(data, n)", False, False),
    ],
)
def test_sizes(lines: str, whole: bool, counts: bool) -> None:
    assert asked(lines) == (whole, counts)
