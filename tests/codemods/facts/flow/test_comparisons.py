"""Comparisons: of samples, of numbers that all ranks have to agree on, of the size of a batch."""

from __future__ import annotations

from tests.codemods.facts.flow.followed import TRAINING, followed, of_evaluation, reasons, undivided


def test_samples_are_compared_by_themselves() -> None:
    assert "sharded" in of_evaluation("total += (model(x).argmax(1) == y).sum().item()").status.values()


def test_a_number_of_a_ranks_samples_is_agreed_on() -> None:
    found = followed(f"{TRAINING}        if loss.item() > 3:\n            print('large')\n")
    assert found.problems == () and found.found.reductions


def test_a_comparison_of_what_is_not_known_decides_nothing_by_itself() -> None:
    masked = TRAINING.replace("model(x)", "model(x * (x.unfold(1, 4, 1).squeeze(1) > 0).float())")
    assert not any("is read here" in each for each in reasons(masked))
    chosen = "f = [1, 2][int(x.unfold(1, 4, 1) > 0)]\n        loss = f * F"
    assert undivided(TRAINING.replace("loss = F", chosen))
