"""Losses of torch that get another reduction once they are made: no loss is taken for the mean that it was."""

from __future__ import annotations

import pytest

from .test_followed import HEAD, LOOP, plain, undivided

TRAINS = LOOP.format(loss="criterion(model(x), y)", step="optimizer.step()")


@pytest.mark.parametrize(
    "change",
    [
        'criterion.reduction = "sum"',
        'setattr(criterion, "reduction", "sum")',
        'criterion.__dict__.update(reduction="sum")',
        'criterion.__dict__["reduction"] = "sum"',
        'vars(criterion)["reduction"] = "sum"',
        'criterion.__setattr__("reduction", "sum")',
        'criterion.apply(lambda part: setattr(part, "reduction", "sum"))',
        'for part in criterion.modules():\n    part.reduction = "sum"',
    ],
)
def test_a_loss_that_may_have_become_a_sum(change: str) -> None:
    assert undivided(plain(f"{HEAD}criterion = nn.CrossEntropyLoss()\n{change}\n{TRAINS}"))


@pytest.mark.parametrize(
    "made",
    [
        "criterion = nn.CrossEntropyLoss()\n",
        'criterion = nn.CrossEntropyLoss()\nprint(criterion.__dict__["reduction"])\n',
        "criterion = nn.CrossEntropyLoss()\ncriterion.apply(lambda part: part.eval())\n",
        'criterion = nn.CrossEntropyLoss()\nmodel.apply(lambda part: hasattr(part, "reduction") and part.reduction)\n',
    ],
)
def test_a_loss_that_stays_a_mean(made: str) -> None:
    assert not undivided(plain(HEAD + made + TRAINS))
