"""A program is followed until it is known what its loaders feed."""

from __future__ import annotations

from tests.codemods.facts.flow.followed import TRAINING, followed, of_evaluation


def test_what_loaders_feed() -> None:
    found = of_evaluation("total += (model(x).argmax(1) == y).sum().item()")
    assert found.problems == ()
    assert sorted(found.status.values()) == ["sharded", "training"]


def test_an_evaluation_that_cannot_be_added_up_is_whole() -> None:
    found = of_evaluation("total += model(x).std().item()")
    assert "whole" in found.status.values() and found.whole


def test_what_drops_its_last_samples_is_not_divided() -> None:
    loader = "other = DataLoader(test_set, batch_size=8, drop_last=True)\n"
    found = followed(f"{loader}{TRAINING}for x, y in other:\n    total += model(x).sum().item()\nprint(total)")
    assert "whole" in found.status.values()
