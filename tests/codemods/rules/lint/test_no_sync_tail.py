"""no_sync() that saves nothing, or hides the last step (DDP510)."""

from __future__ import annotations

import pytest
from ddpify_codemods.rules.lint.no_sync_tail import RULE

from .wrapped import told

BLOCK = "with model.no_sync():"


def test_a_backward_pass_alone_is_too_late() -> None:
    assert told(RULE, step=f"loss = model(x).mean()\n{BLOCK}\n    loss.backward()\n") == [BLOCK]
    assert not told(RULE, step=f"{BLOCK}\n    loss = model(x).mean()\n    loss.backward()\n")
    assert not told(RULE, step=f"{BLOCK}\n    model(x).mean().backward()\n")


@pytest.mark.parametrize(
    ("test", "ends", "is_told"),
    [
        ("i % 4", "(i + 1) % 4 == 0 or i + 1 == len(loader)", True),
        ("i % 4 and i + 1 < len(loader)", "(i + 1) % 4 == 0 or i + 1 == len(loader)", False),
        ("i % 4", "(i + 1) % 4 == 0", False),
    ],
)
def test_the_last_step_of_an_epoch(test: str, ends: str, is_told: bool) -> None:
    step = f"if {test}:\n    {BLOCK}\n        loss = model(x).mean()\n        loss.backward()\n"
    assert told(RULE, step=f"{step}if {ends}:\n    optimizer.step()\n") == ([BLOCK] if is_told else [])
