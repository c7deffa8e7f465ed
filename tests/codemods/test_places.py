"""Where the nodes of a file lie, in the tree of `ast` and in that of libcst."""

from __future__ import annotations

import ast

import libcst as cst
from ddpify_codemods.places import Places, spans

TEXT = 'name = "é"; call(name)\n\n\n@decorated\ndef f():\n    return call(name)\n'


def test_columns_are_characters_not_bytes() -> None:
    call = ast.parse(TEXT).body[1].value  # type: ignore[attr-defined]
    assert call.col_offset == 13 and Places(TEXT).span(call) == (1, 12, 1, 22)
    assert Places(TEXT).start(call) == (1, 12)


def test_both_trees_agree_about_a_place() -> None:
    tree, module = ast.parse(TEXT), cst.parse_module(TEXT)
    calls = [node for node in ast.walk(tree) if isinstance(node, ast.Call)]
    found = spans(module, tree, {1, 6})
    lying = {where for node, where in found.items() if isinstance(node, cst.Call)}
    assert lying == {Places(TEXT).span(call) for call in calls}


def test_statements_without_an_edit_are_left_out() -> None:
    found = spans(cst.parse_module(TEXT), ast.parse(TEXT), {1})
    assert {where[0] for where in found.values()} == {1}
