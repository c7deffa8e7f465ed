"""Samplers that are not told the epoch have the same order in each."""

from __future__ import annotations

from ddpify.verify.orders import repeated_orders
from ddpify.verify.runs import Record

FIRST = [[5, 0, 7, 2], [6, 1, 3, 4]]
SECOND = [[1, 0, 3, 4], [6, 5, 7, 2]]


def said(passes: list[list[list[int]]], shuffled: bool = True) -> list[str]:
    """What is said of a loader that has made some passes."""
    return repeated_orders(Record(drawn={0: passes}, shuffled={0: "/a b/train.py:3 7"} if shuffled else {}))


def test_the_same_order_in_each_epoch() -> None:
    assert said([FIRST, FIRST]) == ["the loader of train.py:3 shuffles, and has the order of its first epoch in each"]
    assert said([FIRST, FIRST, FIRST[:1]]) and said([[*FIRST, [8]], FIRST])  # one that was left early


def test_loaders_that_are_made_for_each_epoch() -> None:
    drawn = {0: [FIRST], 1: [FIRST]}
    assert repeated_orders(Record(drawn=drawn, shuffled={0: "train.py:3 7", 1: "train.py:3 7"}))
    assert not repeated_orders(Record(drawn=drawn, shuffled={0: "train.py:3 7", 1: "train.py:3 8"}))  # of other data
    assert not repeated_orders(Record(drawn=drawn | {1: [SECOND]}, shuffled={0: "train.py:3 7", 1: "train.py:3 7"}))


def test_another_order_or_one_that_is_meant() -> None:
    assert said([FIRST, SECOND]) == [] and said([FIRST]) == [] and said([]) == []
    assert said([FIRST, FIRST], shuffled=False) == []


def test_a_few_samples_may_have_the_same_order_by_chance() -> None:
    assert said([[[1, 0]], [[1, 0]]]) == []
