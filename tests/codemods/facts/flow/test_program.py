"""A program is followed until it is known what its loaders feed."""

from __future__ import annotations

import pytest
from ddpify_codemods.facts.flow.statements import Follower

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


def test_a_program_that_is_too_large_is_not_followed_in_other_ways(monkeypatch: pytest.MonkeyPatch) -> None:
    """Each takes as long as the first one: without an optimizer that, of what is seen so far, is never in use."""
    runs, run = [0], Follower.run

    def counted(follower: Follower) -> None:
        runs[0] += 1
        run(follower)

    monkeypatch.setattr(Follower, "run", counted)
    monkeypatch.setattr("ddpify_codemods.facts.flow.state._LIMIT", 600)
    made = "other = nn.Linear(4, 3)\nsecond = torch.optim.SGD(other.parameters(), lr=0.1)\n"
    found = followed(made + TRAINING + "print(1 + 2)\n" * 300)
    assert [each.reason for each in found.problems] == ["the program is too large to be followed"]
    assert runs == [1]
