"""Whether the model that is wrapped is the one that the optimizer trains."""

from __future__ import annotations

import ast
from pathlib import Path

import pytest
from ddpify_codemods.facts.same_model import is_same_model
from ddpify_codemods.reading import read

SCRIPT = """\
import torch
from torch.nn.parallel import DistributedDataParallel as DDP


class Trainer:
    def __init__(self, model):
        self.model = model.to(0)
        self.model = DDP(self.model)


def load():
    model = torch.nn.Linear(20, 1)
    other = torch.nn.Linear(20, 1)
    optimizer = torch.optim.SGD({0}.parameters())
    return model, optimizer


model, optimizer = load()
trainer = Trainer(model)
"""


@pytest.mark.parametrize(("trained", "same"), [("model", True), ("other", False)])
def test_through_a_function_that_returns_several(trained: str, same: bool) -> None:
    [script] = read({Path("train.py"): SCRIPT.format(trained)})[1]
    [wrapped] = [call.args[0] for call in script.find(ast.Call) if ast.unparse(call.func) == "DDP"]
    [base] = [node.value for node in script.find(ast.Attribute) if node.attr == "parameters"]
    assert is_same_model(script, base, wrapped, "self.model") is same
