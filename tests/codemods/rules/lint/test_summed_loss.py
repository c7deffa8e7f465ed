"""Losses that are sums, and are not scaled (DDP522)."""

from __future__ import annotations

import pytest
from ddpify_codemods.rules.lint.summed_loss import RULE

from .wrapped import told

SUM = 'loss = nn.functional.mse_loss(model(x), y, reduction="sum")'


@pytest.mark.parametrize(
    ("line", "is_told"),
    [
        (SUM, True),
        (SUM.replace('reduction="sum"', "size_average=False"), True),
        (SUM.replace("sum", "mean"), False),
        (f"{SUM} * dist.get_world_size()", False),
        (f"{SUM}.div(8)", False),
    ],
)
def test_what_a_loss_adds_up(line: str, is_told: bool) -> None:
    assert told(RULE, step=f"{line}\nloss.backward()\n") == ([line] if is_told else [])


@pytest.mark.parametrize(("reduction", "is_told"), [("sum", True), ("mean", False)])
def test_a_criterion(reduction: str, is_told: bool) -> None:
    made = f'criterion = nn.MSELoss(reduction="{reduction}")\n'
    line = "loss = criterion(model(x), y)"
    assert told(RULE, before=made, step=f"{line}\nloss.backward()\n") == ([line] if is_told else [])
