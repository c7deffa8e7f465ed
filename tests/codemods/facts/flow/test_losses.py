"""What losses of torch make of batches."""

from __future__ import annotations

import pytest

from tests.codemods.facts.flow.followed import TRAINING, followed, undivided

CE = "F.cross_entropy(model(x), y)"


@pytest.mark.parametrize(("options", "weighs"), [("", False), (", ignore_index=2", True), (", weight=None", False)])
def test_a_loss_that_leaves_targets_out_is_weighed(options: str, weighs: bool) -> None:
    found = followed(TRAINING.replace(CE, f"{CE[:-1]}{options})")).found
    assert bool(found.weighed) is weighs


def test_targets_of_minus_100_may_be_left_out() -> None:
    source = TRAINING.replace("y)", "y.view(-1))")
    assert not followed(source).found.weighed
    assert followed(f"IGNORED = -100\n{source}").found.weighed


def test_a_mean_over_some_samples_is_no_mean_over_the_batch() -> None:
    assert undivided(TRAINING.replace(CE, "F.cross_entropy(model(x)[y > 0], y[y > 0])"))
