"""Where names have their values while a program is followed."""

from __future__ import annotations

import ast

from ddpify_codemods.facts.flow.frames import Frame, ancestors
from ddpify_codemods.facts.flow.values import Value

from tests.codemods.checks import node_of, script_of

SCRIPT = script_of("for a in b:\n    if c:\n        f(d)\n")


def test_a_name_belongs_to_the_frame_that_binds_it() -> None:
    module = Frame(SCRIPT, SCRIPT.tree, {"x": Value(), "y": Value()})
    inner = Frame(SCRIPT, SCRIPT.tree, {"x": Value(), "y": Value()}, outer=module, outside={"y"})
    assert inner.owner("x") is inner and inner.owner("y") is module and inner.owner("z") is None


def test_the_calls_by_which_a_frame_is_reached() -> None:
    first, second = ast.Name("first"), ast.Name("second")
    outer = Frame(SCRIPT, SCRIPT.tree)
    middle = Frame(SCRIPT, SCRIPT.tree, caller=outer, call=first)
    assert Frame(SCRIPT, SCRIPT.tree, caller=middle, call=second).calls == (second, first)


def test_the_statements_around_a_node() -> None:
    loop = SCRIPT.tree.body[0]
    around = [type(each) for each in ancestors(SCRIPT, node_of(SCRIPT, "f(d)"), loop)]
    assert ast.If in around and ast.FunctionDef not in around
