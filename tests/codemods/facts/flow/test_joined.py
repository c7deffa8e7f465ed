"""What losses are made of that cannot be divided, and where it is brought together."""

from __future__ import annotations

import ast

import pytest
from ddpify_codemods.facts.flow.frames import FlowFacts, Joined
from ddpify_codemods.facts.flow.joined import can_be_joined, is_changing
from ddpify_codemods.facts.flow.values import Items, Value, of

from tests.codemods.checks import sources_of
from tests.codemods.facts.flow.followed import TRAINING, followed, reasons


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


CRITERION = """\
class Hard(nn.Module):
    def __init__(self):
        super().__init__()
        self.scale = {scale}

    def forward(self, out, y):
        taken = self.scale * out[y > 0, :]
        return F.cross_entropy(taken, y[y > 0], reduction="sum") / {count}


criterion = Hard()
"""
WITH_ITS_OWN = "optimizer = torch.optim.SGD([*model.parameters(), *criterion.parameters()], lr=0.1)\n"


@pytest.mark.parametrize(
    "count", ["taken.size(0)", "max(len(taken), 1)", "(y > 0).sum().item()", "max((y > 0).sum().item(), 1)"]
)
def test_what_a_loss_divides_by_the_number_of_those_that_it_takes(count: str) -> None:
    """Each rank has another number; all have that of the batch of all ranks."""
    source = CRITERION.format(scale=2.0, count=count) + TRAINING.replace("F.cross_entropy", "criterion")
    assert not reasons(source) and sources_of(list(followed(source).found.joined)) == ["model(x)", "y"]


@pytest.mark.parametrize(
    "count", ["taken.size(0)", "max(len(taken), 1)", "(y > 0).sum().item()", "max((y > 0).sum().item(), 1)"]
)
def test_a_loss_that_is_trained_itself_is_computed_by_each_rank_of_its_own(count: str) -> None:
    source = CRITERION.format(scale="nn.Parameter(torch.ones(1))", count=count)
    assert reasons(source + WITH_ITS_OWN + TRAINING.replace("F.cross_entropy", "criterion"))


@pytest.mark.parametrize("given", ["out[:8], y[:8]", "out[::2], y[::2]"])
def test_a_loss_of_some_of_a_ranks_samples_is_refused(given: str) -> None:
    source = CRITERION.format(scale=2.0, count="max(len(taken), 1)")
    some = TRAINING.replace("loss = F.cross_entropy(model(x), y)", f"out = model(x)\n        loss = criterion({given})")
    assert reasons(source + some)
