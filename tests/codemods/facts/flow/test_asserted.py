"""Conditions that hold for a batch if they hold for each rank's part of it."""

from __future__ import annotations

import ast

import pytest
from ddpify_codemods.facts.flow.asserted import parts

from tests.codemods.facts.flow.followed import TRAINING, undivided

NET = """\
class Net(nn.Module):
    def __init__(self):
        super().__init__()
        self.out = nn.Linear(4, 3)

    def forward(self, x):
        {}
        return self.out(x)
model = Net()
optimizer = torch.optim.SGD(model.parameters(), lr=0.1)
"""
HOLD = [
    "x.max() < 3",
    "torch.max(x).item() <= 3",
    "0 <= x.min()",
    "(x >= 0).all()",
    "bool(torch.all(x >= 0)) and x.max() < 3",
    "not torch.isnan(x).any()",
    "not (x < 0).any()",
    "not (torch.isnan(x).any() or x.min() < 0)",
]
MAY_NOT = [
    "x.max() > 3",
    "(x > 0).any()",
    "x.sum() < 3",
    "x.max() < 3 or x.min() > 0",
    "not (x > 0).all()",
    "x.norm() < 1",
]


@pytest.mark.parametrize("test", HOLD)
def test_what_each_part_can_say(test: str) -> None:
    assert parts(ast.parse(test, mode="eval").body) is not None
    assert not undivided(NET.format(f"assert {test}, 'no'") + TRAINING)
    assert not undivided(NET.format(f"if not ({test}):\n            raise ValueError") + TRAINING)
    assert not undivided(TRAINING.replace("optimizer.zero_grad()", f"assert {test}"))


@pytest.mark.parametrize("test", MAY_NOT)
def test_what_only_the_batch_can_say(test: str) -> None:
    assert parts(ast.parse(test, mode="eval").body) is None
    assert undivided(NET.format(f"assert {test}") + TRAINING)


@pytest.mark.parametrize("test", HOLD)
def test_what_is_decided_otherwise_or_may_be_caught(test: str) -> None:
    assert undivided(NET.format(f"if {test}:\n            x = 2 * x") + TRAINING)
    caught = f"try:\n            assert {test}\n        except AssertionError:\n            x = 2 * x"
    assert undivided(NET.format(caught) + TRAINING)
