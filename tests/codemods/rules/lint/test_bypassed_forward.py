"""Losses that are computed past the wrapper (DDP508)."""

from __future__ import annotations

import pytest
from ddpify_codemods.rules.lint.bypassed_forward import RULE

from .wrapped import told


@pytest.mark.parametrize(
    ("value", "is_told"),
    [
        ("model.module(x)", True),
        ("model.module.encode(x)", True),
        ("model(x)", False),
        ("model.module(x).detach() + model(x)", False),
    ],
)
def test_what_a_loss_is_made_of(value: str, is_told: bool) -> None:
    line = f"loss = {value}.mean()"
    assert told(RULE, step=f"{line}\nloss.backward()\n") == ([line] if is_told else [])


def test_what_no_backward_pass_reaches() -> None:
    assert not told(RULE, "print(model.module(x))\n")


def test_the_step_of_the_other_model_goes_past() -> None:
    step = "fake = model.module(x)\nfake.mean().backward()\nloss = model(x).mean()\nloss.backward()\n"
    assert not told(RULE, step=step)
