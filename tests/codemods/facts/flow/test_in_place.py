"""Methods that change a tensor in place."""

from __future__ import annotations

import ast

import pytest
from ddpify_codemods.facts.flow.frames import Frame
from ddpify_codemods.facts.flow.in_place import has_another_name, is_in_place, root_of_tensor

from tests.codemods.checks import node_of, script_of


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
