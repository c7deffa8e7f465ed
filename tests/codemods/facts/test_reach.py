"""Whether what a script starts can come to a `.backward()`."""

from __future__ import annotations

import pytest
from ddpify_codemods.facts.reach import reaches_backward

from tests.codemods.checks import script_of

NET = script_of("def train():\n    loss.backward()\ndef idle():\n    pass", is_entry=False)


@pytest.mark.parametrize(
    ("entry", "reached"),
    [("train()", True), ("idle()", False), ("run = {'train': 1}\nloss.backward()", True), ("x = net.train", True)],
)
def test_names_lead_to_what_is_reached(entry: str, reached: bool) -> None:
    assert reaches_backward([script_of(entry), NET]) is reached
