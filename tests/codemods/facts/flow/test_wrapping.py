"""Which models are wrapped, and by which names."""

from __future__ import annotations

import ast

import pytest

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


@pytest.mark.parametrize("again", ["", "    if total:\n        model = nn.Linear(4, 3)\n"])
def test_a_name_gets_another_model_above_the_function_that_made_the_optimizer(again: str) -> None:
    main = f"def main():\n    model = nn.Linear(4, 3)\n    optimizer = made(model)\n{again}"
    main += "    train(model, optimizer)\n\n\n"
    made = "def made(model):\n    return torch.optim.SGD(model.parameters(), lr=0.1)\n\n\n"
    train, bare = FUNCTIONS.partition("def once")[0], HEAD.partition("model =")[0] + "total = 0\n"
    assert bool(wrapped(train + main + made + "main()\n", bare).problems) is bool(again)


KEPT = """\
class Trainer:
    def __init__(self, net):
        self.net = net
        net.to(torch.device("cuda"))
        self.optimizer = torch.optim.SGD(net.parameters(), lr=0.1)

    def fit(self):
        for x, y in train_loader:
            self.optimizer.zero_grad()
            F.cross_entropy(self.net(x), y).backward()
            self.optimizer.step()


Trainer(nn.Linear(4, 3)).fit()
"""


def test_a_kept_model_is_moved_by_the_name_that_it_came_by() -> None:
    found = wrapped(KEPT, HEAD.partition("model =")[0])
    assert not found.problems and found.models[0].is_moved_later
    typed = wrapped(KEPT.replace('net.to(torch.device("cuda"))', "net.double()"), HEAD.partition("model =")[0])
    assert typed.problems
