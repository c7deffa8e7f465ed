"""Loaders whose options come from a dictionary."""

from __future__ import annotations

import pytest
from ddpify_codemods.facts.flow.options import options

from tests.codemods.checks import node_of, script_of

HEAD = "from torch.utils.data import DataLoader\nconfig = {'batch_size': 4, 'shuffle': True}\n"


@pytest.mark.parametrize(
    ("lines", "name"),
    [
        ("loader = DataLoader(data, **config)", "config"),
        ("loader = DataLoader(data, **config)\nprint(config)", ""),
        ("for data in sets:\n    loader = DataLoader(data, **config)", ""),
        ("config = {}\nloader = DataLoader(data, **config)", "config"),
    ],
)
def test_a_dictionary_for_this_loader_alone(lines: str, name: str) -> None:
    script = script_of(HEAD + lines)
    assert options(script, node_of(script, "DataLoader(data, **config)")) == name


def test_arguments_of_the_loaders_own() -> None:
    script = script_of(HEAD + "loader = DataLoader(data, batch_size=3, **config)")
    assert options(script, node_of(script, "DataLoader(data, batch_size=3, **config)")) == ""


def test_one_that_says_no_order_is_left_as_it_is() -> None:
    script = script_of(HEAD.replace(", 'shuffle': True", "") + "loader = DataLoader(data, **config)")
    assert options(script, node_of(script, "DataLoader(data, **config)")) == ""
