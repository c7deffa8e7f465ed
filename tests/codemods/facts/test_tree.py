"""A syntax tree, walked once."""

from __future__ import annotations

import ast

import pytest
from ddpify_codemods.facts.tree import children, index, parsed, walk


def test_nodes_kinds_and_parents() -> None:
    module = parsed("def f(a):\n    return a + 1")
    tree = index(module)
    assert tree.nodes[0] is module
    (function,) = tree.by_kind[ast.FunctionDef]
    assert tree.parents[function] is module and module not in tree.parents
    assert {type(node) for node in walk(module)} == set(tree.by_kind)


def test_contexts_and_operators_are_left_out() -> None:
    kinds = {type(node) for node in walk(parsed("a = b + c"))}
    assert kinds == {ast.Module, ast.Assign, ast.Name, ast.BinOp}


def test_children_come_in_the_order_of_the_source() -> None:
    call = parsed("f(a, b=c)").body[0].value  # type: ignore[attr-defined]
    assert [type(node) for node in children(call)] == [ast.Name, ast.Name, ast.keyword]


def test_a_text_is_parsed_once() -> None:
    assert parsed("x = 3") is parsed("x = 3")
    with pytest.raises(SyntaxError):
        parsed("print 3")
