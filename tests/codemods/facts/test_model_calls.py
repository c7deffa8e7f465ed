"""Every use of a model that is going to be wrapped."""

from __future__ import annotations

import ast

from ddpify_codemods.facts.model_calls import ModelCalls, binder_of, model_calls, parameters

from tests.codemods.checks import script_of, sources_of

HEAD = """
import torch
model = torch.nn.Linear(2, 2)
optimizer = torch.optim.SGD(model.parameters(), lr=0.1)
"""


def followed(source: str) -> ModelCalls:
    script = script_of(HEAD + source)
    at = script.tree.body[1]
    assert isinstance(at, ast.Assign)
    return model_calls(script, at.targets[0], at)


def test_calls_take_the_wrapper_and_attributes_the_model() -> None:
    found = followed("loss = model(x).mean()\nloss.backward()\ntorch.save(model.state_dict(), 'm')")
    assert sources_of(found.wrapped) == ["model"]
    assert not found.problems


def test_a_forward_that_goes_past_the_wrapper_is_a_problem() -> None:
    found = followed("loss = model.forward(x).mean()\nloss.backward()")
    assert len(found.problems) == 1


def test_functions_that_are_given_the_model_take_the_wrapper() -> None:
    found = followed("def train(net):\n    net(x).mean().backward()\ntrain(model)")
    assert [name for _, name in found.taking] == ["net"]


def test_parameters_and_who_binds_a_name() -> None:
    script = script_of("y = 1\ndef f(a, b=0):\n    return a + y")
    function = next(script.find(ast.FunctionDef))
    assert parameters(function) == {"a", "b"}
    binders = {node.id: binder_of(script, node) for node in ast.walk(function) if isinstance(node, ast.Name)}
    assert binders == {"a": function, "y": script.tree}
