"""Which backward passes have left gradients in a model."""

from __future__ import annotations

import ast

from ddpify_codemods.facts.flow.gradients import Gradients

ONE, TWO = ast.Name("one"), ast.Name("two")
FIRST, SECOND = ast.Call(ONE, [], []), ast.Call(TWO, [], [])


def test_passes_are_left_until_they_are_zeroed() -> None:
    found = Gradients().passed(ONE, FIRST).passed(ONE, SECOND).passed(TWO, FIRST)
    assert found.left == {ONE: {FIRST, SECOND}, TWO: {FIRST}}
    assert found.zeroed([ONE]).left == {ONE: frozenset(), TWO: {FIRST}}


def test_a_wrapper_averages_the_pass_after_its_call_and_no_other() -> None:
    called = Gradients().awaits([ONE])
    assert called.awaited == {ONE} and called.passed(ONE, FIRST).awaited == frozenset()


def test_one_of_two_ways() -> None:
    either = Gradients().passed(ONE, FIRST).froze([ONE], True).or_else(Gradients().awaits([ONE]).passed(ONE, SECOND))
    assert either.left[ONE] == {FIRST, SECOND} and either.awaited == frozenset()
    assert either.frozen[ONE] is None
