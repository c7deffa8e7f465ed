"""Layers that a model gets after its optimizer was made."""

from __future__ import annotations

import pytest
from ddpify_codemods.facts.flow.late_layers import LATE
from ddpify_codemods.facts.flow.late_moves import LATE_TYPE

from tests.codemods.facts.flow.followed import TRAINING, followed
from tests.codemods.plain.test_followed import plain, refusals

NET = """\
class Net(nn.Module):
    def __init__(self):
        super().__init__()
        self.body, self.head = nn.Linear(4, 4), nn.Linear(4, 3)
        self.blocks = nn.ModuleList([nn.Linear(4, 4)])
    def forward(self, x):
        for block in self.blocks:
            x = block(x)
        return self.head(self.body(x))
class Scale(nn.Module):
    def __init__(self):
        super().__init__()
        self.by = nn.Parameter(torch.ones(1))
class Unseen(nn.Module):
    def __init__(self):
        super().__init__()
        self.net = make()
class Weighed(nn.Module):
    def __init__(self):
        super().__init__()
        self.loss = nn.MSELoss()
        self.register_buffer("by", torch.ones(1))
model = Net()
optimizer = torch.optim.SGD(model.parameters(), lr=0.1)
"""
FROZEN = "new = nn.Linear(4, 3)\nfor p in new.parameters():\n    p.requires_grad = False\nmodel.head = new\n"
AGAIN = "optimizer = torch.optim.SGD(model.parameters(), lr=0.1)\n"


@pytest.mark.parametrize(
    "code",
    [
        "model.head = nn.Linear(4, 3)",
        "setattr(model, 'head', nn.Linear(4, 3))",
        "model.add_module('head', nn.Linear(4, 3))",
        "model.blocks.append(nn.Linear(4, 4))",
        "nn.utils.parametrizations.weight_norm(model.head)",
        "torch.ao.quantization.prepare_qat(model, inplace=True)",
        "model.heads = nn.ModuleDict({'a': nn.Linear(4, 3)})",
        "model.scale = Scale()",
        "model.head = nn.Sequential(nn.Linear(4, 4), model.head)",
        "model.scale = Unseen()",
        "model.head.bias = None",
        FROZEN + "for p in model.parameters():\n    p.requires_grad = True",
        FROZEN + "new.requires_grad_()",
    ],
)
def test_layers_that_no_wrapper_has(code: str) -> None:
    assert LATE in {each.reason for each in followed(f"{NET}{TRAINING}{code}\n{TRAINING}").problems}
    assert LATE not in {each.reason for each in followed(f"{NET}{TRAINING}{code}\n{AGAIN}{TRAINING}").problems}
    assert LATE not in {each.reason for each in followed(f"{NET}{TRAINING}{code}\n").problems}


@pytest.mark.parametrize(
    "code",
    [
        "model.act = nn.ReLU()",
        "model.head = model.head",
        "model.head = nn.Sequential(nn.Dropout(0.1), model.head)",
        "model.step = 3",
        "import json\nmodel.config = json.load(open('a.json'))",
        "for p in model.parameters():\n    p.requires_grad = True",
        "torch.ao.quantization.convert(model, inplace=False)",
        "torch.ao.quantization.convert(model, inplace=args.inplace)",
        "model.metrics = nn.ModuleDict({'a': nn.L1Loss(), 'b': make()})",
        "model.criterion = Weighed()",
        FROZEN,
    ],
)
def test_what_is_no_new_layer(code: str) -> None:
    assert LATE not in {each.reason for each in followed(f"{NET}{TRAINING}{code}\n{TRAINING}").problems}


@pytest.mark.parametrize(
    "call", ["double()", "half()", "bfloat16()", "to(torch.float64)", "to('cpu', dtype=torch.half)"]
)
def test_another_type_behind_the_wrapper(call: str) -> None:
    change = f"def change(net):\n    net.{call}\nchange(model)\n"
    assert LATE_TYPE in {each.reason for each in followed(f"{NET}{change}{TRAINING}").problems}
    assert LATE_TYPE not in {each.reason for each in followed(f"{NET}{change}{AGAIN}{TRAINING}").problems}
    assert LATE_TYPE not in {each.reason for each in followed(f"{NET}{TRAINING}{change}").problems}


@pytest.mark.parametrize("call", ["float()", "to('cpu')", "train()"])
def test_the_same_type_behind_the_wrapper(call: str) -> None:
    change = f"def change(net):\n    net.{call}\nchange(model)\n"
    assert LATE_TYPE not in {each.reason for each in followed(f"{NET}{change}{TRAINING}").problems}


MAKES = """\
import torch
from torch import nn
from torch.utils.data import DataLoader, TensorDataset

def change(model):
    {change}

def make(model):
    {calls}
    return torch.optim.SGD(model.parameters(), lr=0.1)

loader = DataLoader(TensorDataset(torch.rand(64, 4), torch.rand(64, 2)), batch_size=8, shuffle=True)
model = nn.Sequential(nn.Linear(4, 2))
{first}
optimizer = make(model)
for x, y in loader:
    loss = nn.functional.mse_loss(model(x), y)
    optimizer.zero_grad()
    loss.backward()
    optimizer.step()
"""


@pytest.mark.parametrize("change", ["model.append(nn.Linear(2, 2))", "model.double()", "model[0] = nn.Linear(4, 2)"])
def test_a_function_that_changes_what_it_makes_the_optimizer_of(change: str) -> None:
    inside = plain(MAKES.format(change=change, calls="change(model)", first=""))
    assert "where its optimizer is made" in refusals(inside)[0]
    assert not refusals(plain(MAKES.format(change=change, calls="pass", first="change(model)")))
    moved = plain(MAKES.format(change="model.to('cpu')", calls="change(model)", first=""))
    assert not refusals(moved)


LEARNER = """\
import torch
from torch import nn
from torch.utils.data import DataLoader, TensorDataset

class Learner:
    def __init__(self, model, optimizer):
        self.model, self.optimizer = model, optimizer

    def fit(self, loader):
        for x, y in loader:
            loss = nn.functional.mse_loss(self.model(x), y)
            self.optimizer.zero_grad()
            loss.backward()
            self.optimizer.step()

def main():
    loader = DataLoader(TensorDataset(torch.rand(64, 4), torch.rand(64, 2)), batch_size=8, shuffle=True)
    model = nn.Sequential(nn.Linear(4, 2))
    model.append(nn.Linear(2, 2))
    optimizer = torch.optim.SGD(model.parameters(), lr=0.1)
    Learner(model, optimizer).fit(loader)

main()
"""


def test_a_function_that_changes_a_model_before_an_object_gets_it() -> None:
    result = plain(LEARNER)
    assert not refusals(result)
    assert "self.ddp_model = DistributedDataParallel(self.model)" in result.code
