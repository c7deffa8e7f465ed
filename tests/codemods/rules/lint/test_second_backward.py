"""Backward passes of which the second is not averaged (DDP509)."""

from __future__ import annotations

import pytest
from ddpify_codemods.rules.lint.second_backward import RULE

from .wrapped import told


@pytest.mark.parametrize(
    ("step", "lines"),
    [
        ("a.backward(retain_graph=True)\nb.backward()", ["b.backward()"]),
        ("a.backward(retain_graph=False)\nb.backward()", []),
        ("a.backward()\nb.backward()", []),
        ("a.backward(retain_graph=True, inputs=given)\nb.backward()", []),
        ("if epoch:\n    a.backward(retain_graph=True)\nelse:\n    b.backward()", []),
    ],
)
def test_which_pass_stays_local(step: str, lines: list[str]) -> None:
    assert told(RULE, step=step) == lines
    assert not told(RULE, step=step, is_wrapped=False)
