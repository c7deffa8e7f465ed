"""Backward passes and steps of optimizers."""

from __future__ import annotations

import ast

from tests.codemods.facts.flow.followed import TRAINING, followed


def test_a_backward_pass_is_known_with_the_calls_that_it_goes_through() -> None:
    found = followed(TRAINING).found
    ((backward, _), calls) = next(iter(found.reached.items()))
    assert ast.unparse(backward) == "loss.backward()"
    assert [ast.unparse(call) for call in calls] == ["model(x)"]
    assert not found.not_averaged


def test_a_second_backward_pass_of_one_call_is_not_averaged() -> None:
    twice = TRAINING.replace("loss.backward()", "loss.backward(retain_graph=True)\n        (2 * loss).backward()")
    found = followed(twice)
    assert found.found.not_averaged or found.problems


def test_parts_may_name_each_other() -> None:
    descriptors = "import pb\na, b = pb.make(), pb.make()\na.other = b\nb.other = a\na.fields[0].other = b\n"
    assert not followed(descriptors + TRAINING).problems
