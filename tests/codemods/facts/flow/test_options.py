"""Loaders whose options come from a dictionary."""

from __future__ import annotations

import pytest
from ddpify_codemods.facts.flow.options import in_other_order, options, shared_order, shown_of

from tests.codemods.checks import node_of, script_of

HEAD = "from torch.utils.data import DataLoader\nconfig = {'batch_size': 4, 'shuffle': True}\n"


@pytest.mark.parametrize(
    ("lines", "name"),
    [
        ("loader = DataLoader(data, **config)", "config"),
        ("loader = DataLoader(data, **config)\nprint(config)", ""),
        ("for data in sets:\n    loader = DataLoader(data, **config)", ""),
        ("loaders = [DataLoader(data, **config) for data in sets]", ""),
        ("loaders = {key: DataLoader(data, **config) for key, data in sets.items()}", ""),
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


def test_an_order_that_is_left_for_others() -> None:
    script = script_of(f"{HEAD}one = DataLoader(data, **config)\nother = DataLoader(more, **config)")
    one = node_of(script, "DataLoader(data, **config)")
    written = shared_order(script, one)
    assert written is not None and in_other_order(written) == "dict(config, shuffle=False)"
    assert in_other_order(written, "w").startswith('dict(config, batch_size=config["batch_size"] // w,')
    seen = shown_of(script, one)
    assert seen is not None and getattr(seen.shuffle, "value", None) is True
    last = node_of(script, "DataLoader(more, **config)")
    assert shared_order(script, last) is None  # whose dictionary is changed


def test_an_order_of_the_loaders_own() -> None:
    script = script_of(f"{HEAD}one = DataLoader(data, sampler=s, **config)\nother = DataLoader(more, **config)")
    assert shared_order(script, node_of(script, "DataLoader(data, sampler=s, **config)")) is None
