"""Networks that drop numbers at random, and what a whole evaluation by one in training decides."""

from __future__ import annotations

import ast
from pathlib import Path

import pytest
from ddpify_codemods.facts.flow.dropout import draws_masks
from ddpify_codemods.facts.flow.values import Class, Module, of
from ddpify_codemods.facts.script import Script

from tests.codemods.facts.flow.followed import HEAD
from tests.codemods.plain.test_followed import plain, refusals


def layer(made: str) -> Module:
    call = ast.parse(made, mode="eval").body
    assert isinstance(call, ast.Call)
    return Module(call, ast.unparse(call.func))


@pytest.mark.parametrize(
    ("made", "drops"),
    [
        ("torch.nn.Dropout(0.5)", True),
        ("torch.nn.Dropout2d()", True),
        ("torch.nn.Dropout(p=0)", False),
        ("torch.nn.Linear(2, 2)", False),
        ("torch.nn.LSTM(2, 2, dropout=0.2)", True),
        ("torch.nn.LSTM(2, 2)", False),
        ("torch.nn.TransformerEncoderLayer(8, 2)", True),
        ("torch.nn.TransformerEncoderLayer(8, 2, dropout=0.0)", False),
        ("torchvision.models.vgg11()", True),
        ("torchvision.models.resnet18()", False),
    ],
)
def test_layers_that_drop(made: str, drops: bool) -> None:
    assert draws_masks(layer(made)) is drops
    assert draws_masks(Module(ast.Pass(), attributes={"part": of(layer(made))})) is drops


@pytest.mark.parametrize(
    ("call", "trains", "evaluates"),
    [
        ("F.dropout(x, training=self.training)", True, False),
        ("F.dropout(x, 0.1, self.training)", True, False),
        ("F.dropout(x, 0.1)", True, True),
        ("F.dropout2d(x, training=True)", True, True),
        ("self.dropout(x)", False, False),
    ],
)
def test_functions_that_drop(call: str, trains: bool, evaluates: bool) -> None:
    text = f"class Net(nn.Module):\n    def forward(self, x):\n        return {call}"
    tree = ast.parse(text)
    script = Script(Path("net.py"), text, tree, is_entry=True, defined=frozenset())
    net = Module(ast.Pass(), cls=Class(next(script.find(ast.ClassDef)), script))
    assert (draws_masks(net), draws_masks(net, evaluates=True)) == (trains, evaluates)


LOOP = """\
from sklearn.metrics import f1_score
best = 0
for epoch in range(3):
    model.train()
    for x, y in train_loader:
        optimizer.zero_grad()
        F.cross_entropy(model(x), y).backward()
        optimizer.step()
    {evaluates}
    for x, y in test_loader:
        found = f1_score(y, model(x).argmax(1))
    {decides}
"""
NET = "model = nn.Sequential(nn.Linear(4, 3), nn.Dropout(0.1))"


FUNCTION = """\
class Net(nn.Module):
    def __init__(self):
        super().__init__()
        self.last = nn.Linear(4, 3)

    def forward(self, x):
        return F.dropout(self.last(x), 0.1{told})


model = Net()"""


@pytest.mark.parametrize("told", ["", ", self.training"])
def test_dropout_that_is_not_told_of_an_evaluation(told: str) -> None:
    loop = LOOP.format(evaluates="model.eval()", decides="if found > best: break")
    source = HEAD.replace("model = nn.Linear(4, 3)", FUNCTION.format(told=told)) + loop
    result = plain(source)
    assert not refusals(result) and ("if from_rank_0(bool(found > best)):" in result.code) is (told == "")


@pytest.mark.parametrize(
    ("evaluates", "decides", "sent"),
    [
        ("pass", "if found > best: break", True),
        ("model.eval()", "if found > best: break", False),
        ("pass", "print(found)", False),
    ],
)
def test_a_decision_by_an_evaluation_that_drops(evaluates: str, decides: str, sent: bool) -> None:
    """Each rank would come to another one."""
    source = HEAD.replace("model = nn.Linear(4, 3)", NET) + LOOP.format(evaluates=evaluates, decides=decides)
    result = plain(source)
    assert not refusals(result) and ("from_rank_0(bool(found > best))" in result.code) is sent
