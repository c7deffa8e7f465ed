"""Where the model is wrapped, and which uses take the wrapper."""

from __future__ import annotations

import ast

from ddpify_codemods.facts.flow.wrapping import Wrapping, argument, wrapping
from ddpify_codemods.styles import in_program

from tests.codemods.checks import node_of, script_of
from tests.codemods.facts.flow.followed import HEAD, TRAINING


def wrapped(source: str, head: str = HEAD) -> Wrapping:
    (script,) = in_program([script_of(head + source)])
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


FUNCTIONS = """\
def train(model, optimizer):
    for x, y in train_loader:
        optimizer.zero_grad()
        F.cross_entropy(model(x), y).backward()
        optimizer.step()


def once():
    model = nn.Linear(4, 3)
    optimizer = torch.optim.SGD(model.parameters(), lr=0.1)
    train(model, optimizer)


def go_on(model):
    optimizer = torch.optim.SGD(model.parameters(), lr=0.01)
    train(model, optimizer)


def twice():
    model = nn.Linear(4, 3)
    optimizer = torch.optim.SGD(model.parameters(), lr=0.1)
    train(model, optimizer)
    go_on(model)
"""


def test_each_function_that_makes_an_optimizer_wraps_its_model() -> None:
    found = wrapped(
        FUNCTIONS + "if total:\n    once()\nelse:\n    twice()\n", HEAD.partition("model =")[0] + "total = 0\n"
    )
    assert not found.problems
    (model,) = found.models
    assert [ast.unparse(at).partition(" = ")[0] for at in model.at] == ["optimizer"] * 3
    assert [ast.unparse(found.models[0].script.parents[node]) for node in found.calls] == [
        "train(model, optimizer)"
    ] * 3
