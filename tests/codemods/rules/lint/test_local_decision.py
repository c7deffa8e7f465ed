"""Decisions by numbers of this rank (DDP506)."""

from __future__ import annotations

import pytest
from ddpify_codemods.rules.lint.local_decision import RULE

from .wrapped import STEP, told

PLATEAU = "plan = torch.optim.lr_scheduler.ReduceLROnPlateau(optimizer)\nplan.step(loss)"


def test_a_rate_that_follows_the_loss() -> None:
    assert told(RULE, PLATEAU) == ["plan.step(loss)"]
    assert not told(RULE, PLATEAU.replace("ReduceLROnPlateau(optimizer)", "StepLR(optimizer, 1)"))
    assert not told(RULE, f"dist.all_reduce(loss)\n{PLATEAU}")


@pytest.mark.parametrize(("test", "is_told"), [("loss < 0.1", True), ("patience > 3", True), ("steps > 9", False)])
def test_an_early_stop(test: str, is_told: bool) -> None:
    assert told(RULE, step=f"{STEP}if {test}:\n    break\n") == (["break"] if is_told else [])


def test_a_loop_that_does_not_train_may_end() -> None:
    assert not told(RULE, "for x, y in data:\n    if loss < 0.1:\n        break\n")


@pytest.mark.parametrize(("data", "is_told"), [("whole", False), ("loader", True)])
def test_a_number_of_the_whole_data_set_is_the_same_on_all_ranks(data: str, is_told: bool) -> None:
    step = f"{STEP}score = test(model, {data})\nif score > 0.9:\n    break\n"
    assert bool(told(RULE, before="whole = DataLoader(data, 8)\n", step=step)) is is_told
