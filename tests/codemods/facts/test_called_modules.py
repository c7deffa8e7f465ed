"""Which expressions are modules: those that are called, or handed to functions of the program."""

from __future__ import annotations

import ast

import pytest
from ddpify_codemods.facts.called_modules import called, called_prefix, last_name, libraries, root

from tests.codemods.checks import node_of, script_of

SCRIPT = """
import torch
from torch import nn
def train(net):
    net(torch.rand(2))
model = Net()
model.features[0].weight
model(torch.rand(2))
other = Net()
train(other)
other.weight
"""


@pytest.mark.parametrize(("source", "module"), [("model.features[0].weight", "model"), ("other.weight", "other")])
def test_the_shortest_part_that_is_called_is_the_module(source: str, module: str) -> None:
    script = script_of(SCRIPT)
    found = called_prefix(script, node_of(script, source))
    assert found is not None and ast.unparse(found) == module


def test_what_nobody_calls_is_no_module() -> None:
    script = script_of("import torch\nx = torch.zeros(3)\nx.data")
    assert called_prefix(script, node_of(script, "x.data")) is None


def test_functions_and_libraries_are_no_modules() -> None:
    script = script_of(SCRIPT)
    assert called(script) == {"model", "net", "Net", "torch.rand"}
    assert libraries(script) == {"torch", "nn"}


@pytest.mark.parametrize(
    ("source", "first", "last"), [("a.b.c", "a", "c"), ("a.b().c", "a", "c"), ("f()()[0]", "f", "")]
)
def test_names_of_an_expression(source: str, first: str, last: str) -> None:
    node = ast.parse(source, mode="eval").body
    assert (root(node), last_name(node)) == (first, last)
