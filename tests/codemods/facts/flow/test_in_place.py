"""Methods that change a tensor in place."""

from __future__ import annotations

import ast

import pytest
from ddpify_codemods.facts.flow.frames import Frame
from ddpify_codemods.facts.flow.in_place import (
    OTHER_NAME,
    has_another_name,
    is_in_place,
    root_of_tensor,
    stands_for_another,
)

from tests.codemods.checks import node_of, script_of
from tests.codemods.facts.flow.followed import TRAINING, followed


@pytest.mark.parametrize(
    ("name", "answer"), [("add_", True), ("copy_", True), ("add", False), ("__add__", False), ("requires_grad_", False)]
)
def test_methods_that_change_their_tensor(name: str, answer: bool) -> None:
    assert is_in_place(name) is answer


def test_what_a_tensor_is_reached_by() -> None:
    node = ast.parse("real.data.resize_(n).copy_(x)", mode="eval").body
    assert ast.unparse(root_of_tensor(node)) == "real"


@pytest.mark.parametrize(("line", "answer"), [("y = x.view(-1)", True), ("y = x + 1", False)])
def test_another_name_for_the_same_memory(line: str, answer: bool) -> None:
    script = script_of(f"x = f()\n{line}\nx.add_(1)")
    call = node_of(script, "x.add_(1)")
    assert has_another_name(call.func.value, call, Frame(script, script.tree)) is answer


@pytest.mark.parametrize(
    ("lines", "answer"),
    [("d = x", True), ("d, e = x.view(-1), 3", True), ("d = x + 1", False), ("d = x.clone()", False), ("d = d", False)],
)
def test_a_variable_that_is_given_the_memory_of_another_one(lines: str, answer: bool) -> None:
    script = script_of(f"{lines}\nd.sub_(1)")
    call = node_of(script, "d.sub_(1)")
    assert stands_for_another(call.func.value, Frame(script, script.tree)) is answer


@pytest.mark.parametrize(
    ("change", "answer"),
    [
        ("d = x\n        d -= d.mean()", True),
        ("d = x.view(-1)\n        d.sub_(d.mean())", True),
        ("pair = (x, y)\n        d = pair[0]\n        d -= d.mean(0)", True),
        ("d = x\n        d -= 0.5", False),
        ("d = x.clone()\n        d -= d.mean()", False),
    ],
)
def test_a_change_by_what_each_rank_has(change: str, answer: bool) -> None:
    code = TRAINING.replace("for x, y in train_loader:\n", f"for x, y in train_loader:\n        {change}\n")
    assert code != TRAINING
    assert (OTHER_NAME.format("d") in {each.reason for each in followed(code).problems}) is answer
