"""DistributedDataParallel is made behind what moves its model, in whichever way that is written."""

from __future__ import annotations

import ast

import pytest

from tests.codemods.facts.flow.followed import HEAD, TRAINING, wrapped

OPTIMIZER = "optimizer = torch.optim.SGD(model.parameters(), lr=0.1)\n"
FUNCTIONS = """\
def describe(model):
    print(model)


def prepare(model):
    return model.cuda()


"""


@pytest.mark.parametrize(
    "behind",
    [
        "model.to('cuda')",
        "describe(model)\nmodel.to('cuda')",
        "describe(model)\nif torch.cuda.is_available():\n    model.cuda()",
        "if rates:\n    model.to('cuda')\nelse:\n    model = model.to('cuda')",
        "model = prepare(model)",
        "for each in [model]:\n    each.to('cuda')",
        "with torch.no_grad():\n    print(model(torch.rand(1, 4)))\nmodel.cuda()",
    ],
)
def test_behind_what_moves_it(behind: str) -> None:
    source = f"{OPTIMIZER}{behind}\nrates = 3\n{TRAINING}"
    found = wrapped(source, f"rates = 0\n{FUNCTIONS}" + HEAD.partition("optimizer =")[0])
    assert not found.problems
    assert [ast.unparse(at) for at in found.models[0].at] == ["rates = 3"]
    assert not found.models[0].is_moved_later


@pytest.mark.parametrize("behind", ["describe(model)", "rates = model.weight.to('cuda')", "model.to('cpu')"])
def test_before_the_optimizer_where_nothing_moves_it(behind: str) -> None:
    found = wrapped(f"{OPTIMIZER}{behind}\nrates = 3\n{TRAINING}", FUNCTIONS + HEAD.partition("optimizer =")[0])
    assert [ast.unparse(at) for at in found.models[0].at] == [OPTIMIZER.strip()]


KEEPS = """\
class Trainer:
    def __init__(self, model):
        self.model = model
        self.optimizer = torch.optim.SGD(self.model.parameters(), lr=0.1)

    def fit(self):
        for x, y in train_loader:
            loss = F.cross_entropy(self.model(x.cuda()), y.cuda())
            self.optimizer.zero_grad()
            loss.backward()
            self.optimizer.step()


"""


@pytest.mark.parametrize(
    ("uses", "moves"),
    [
        ("trainer = Trainer(model.to('cuda'))\ntrainer.fit()", False),
        ("model.cuda()\ntrainer = Trainer(model)\ntrainer.fit()", False),
        ("trainer = Trainer(model)\nmodel.to('cuda')\ntrainer.fit()", True),
    ],
)
def test_the_wrapper_moves_what_is_moved_later_elsewhere(uses: str, moves: bool) -> None:
    found = wrapped(KEEPS + uses, HEAD.partition("optimizer =")[0])
    assert not found.problems
    assert found.models[0].is_moved_later is moves
