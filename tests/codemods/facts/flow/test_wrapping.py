"""Which models are wrapped, and by which names."""

from __future__ import annotations

import ast

from tests.codemods.facts.flow.followed import HEAD, TRAINING, wrapped


def test_calls_in_training_take_the_wrapper() -> None:
    found = wrapped(TRAINING)
    assert found.model == "model" and found.models[0].name == "ddp_model" and not found.problems
    assert [(ast.unparse(node), code) for node, (_, code) in found.calls.items()] == [("model", "ddp_model")]


def test_a_name_that_is_taken_is_left() -> None:
    assert wrapped("ddp_model = 3\n" + TRAINING).models[0].name != "ddp_model"


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
