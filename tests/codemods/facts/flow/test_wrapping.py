"""Where the model is wrapped, and which uses take the wrapper."""

from __future__ import annotations

import ast

from ddpify_codemods.facts.flow.wrapping import Wrapping, argument, wrapping
from ddpify_codemods.styles import in_program

from tests.codemods.checks import node_of, script_of
from tests.codemods.facts.flow.followed import HEAD, TRAINING


def wrapped(source: str) -> Wrapping:
    (script,) = in_program([script_of(HEAD + source)])
    assert script.program is not None
    return wrapping(script.program)


def test_calls_in_training_take_the_wrapper() -> None:
    found = wrapped(TRAINING)
    assert found.model == "model" and found.models[0].name == "ddp_model" and not found.problems
    assert [(ast.unparse(node), code) for node, (_, code) in found.calls.items()] == [("model", "ddp_model")]


def test_a_name_that_is_taken_is_left() -> None:
    assert wrapped("ddp_model = 3\n" + TRAINING).models[0].name != "ddp_model"


def test_an_argument_by_name_or_place() -> None:
    script = script_of("def f(a, b): pass\nx = f(1, b=2)")
    function, call = next(script.find(ast.FunctionDef)), node_of(script, "f(1, b=2)")
    found = [argument(function, name, call, script) for name in ("a", "b", "c")]
    assert [each and ast.unparse(each) for each in found] == ["1", "2", None]
