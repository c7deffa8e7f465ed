"""Hooks that count operations, and those that training may notice."""

from __future__ import annotations

import ast

import pytest
from ddpify_codemods.facts.flow.hooks import only_counts

from tests.codemods.checks import script_of

COUNT = """\
import torch


def count(model):
    counts = []

    def hook(module, input, output):
        batch, width = input[0].size()
        counts.append(batch * width * module.weight.nelement())

    model.register_forward_hook(hook)
    model(torch.rand(1, 4))
    return sum(counts)
"""


@pytest.mark.parametrize(
    ("before", "after", "counts"),
    [
        ("", "", True),
        ("    return sum(counts)", "    return counts", False),
        ("    return sum(counts)", "    model.counts = counts", False),
        ("    return sum(counts)", "    return lambda: counts[-1]", False),
        ("counts = []", "counts = model.counts", False),
        ("batch, width =", "module.seen =", False),
        ("batch * width *", "output.mean() *", False),
        ("batch, width = input[0].size()", "batch = 1\n        width = 2\n        output *= batch", False),
        ("counts.append(batch * width * module.weight.nelement())", "return output * 2", False),
        ("    model(torch.rand(1, 4))", "    model(torch.rand(1, 4)).sum().backward()", False),
    ],
)
def test_a_count_stays_in_the_function_around_it(before: str, after: str, counts: bool) -> None:
    script = script_of(COUNT.replace(before, after))
    (hook,) = (node for node in script.find(ast.FunctionDef) if node.name == "hook")
    assert only_counts(script, hook) is counts


def test_a_hook_of_a_file_is_followed_by_nobody() -> None:
    script = script_of("seen = []\n\n\ndef hook(module, input, output):\n    seen.append(input[0].size(0))\n")
    (hook,) = script.find(ast.FunctionDef)
    assert not only_counts(script, hook)
