"""What losses are made of that cannot be divided, and where it is brought together."""

from __future__ import annotations

import ast

import pytest
from ddpify_codemods.facts.flow.frames import FlowFacts, Joined
from ddpify_codemods.facts.flow.joined import can_be_joined, is_changing
from ddpify_codemods.facts.flow.values import Items, Value, of

from tests.codemods.checks import sources_of
from tests.codemods.facts.flow.followed import TRAINING, followed


def expression(source: str) -> ast.expr:
    return ast.parse(source, mode="eval").body


def test_means_and_sums_are_learned_first() -> None:
    joined, term, call = Joined(), expression("a + 1"), expression("f(b)")
    found = FlowFacts(terms={term}, calls={call})
    assert joined.learn(found) and (joined.terms, joined.calls) == ({term}, set())
    assert joined.learn(found) and joined.calls == {call}
    assert not joined.learn(found)
    assert sorted(sources_of(list(joined.parts()))) == ["1", "a", "b"]


def test_a_call_is_not_learned_beside_what_it_comes_to() -> None:
    joined, outer, inner = Joined(), expression("criterion(out, y)"), expression("lovasz(out, y)")
    found = FlowFacts(calls={outer, inner}, calls_within={outer: {inner}})
    assert joined.learn(found) and joined.calls == {inner}
    alone = Joined()
    assert alone.learn(FlowFacts(calls={outer}, calls_within={outer: {inner}})) and alone.calls == {outer}


@pytest.mark.parametrize(
    ("value", "can_be"),
    [
        (Value("rows"), True),
        (Value("batch"), True),
        (Value("mean"), True),
        (Value("size", host=True), True),
        (Value("picked"), False),
        (Value("unknown"), False),
        (Value("rows", host=True), False),  # a list
        (Value("rows", merged=True), False),
        (of(Items("list", {}, Value("rows"))), False),
    ],
)
def test_what_can_be_brought_together(value: Value, can_be: bool) -> None:
    assert can_be_joined(value) is can_be


@pytest.mark.parametrize(
    ("source", "changes"), [("x.add_(y)", True), ("x.backward()", True), ("x.add(y)", False), ("x.__add__(y)", False)]
)
def test_calls_that_are_given_no_copy(source: str, changes: bool) -> None:
    assert is_changing(expression(source)) is changes


@pytest.mark.parametrize(
    ("loss", "parts"),
    [
        ("F.cross_entropy(model(x), y)", []),
        ("torch.sqrt(F.cross_entropy(model(x), y))", ["F.cross_entropy(model(x), y)"]),
        ("torch.cdist(model(x), x[:, :3]).mean()", ["model(x)", "x[:, :3]"]),
        ("F.cross_entropy(model(x), y) + torch.pdist(model(x)).mean()", ["model(x)"]),
    ],
)
def test_what_is_brought_together(loss: str, parts: list[str]) -> None:
    found = followed(TRAINING.replace("F.cross_entropy(model(x), y)", loss)).found
    assert not found.problems and sources_of(list(found.joined)) == parts
