"""Layers that a model gets after its optimizer was made."""

from __future__ import annotations

import pytest
from ddpify_codemods.facts.flow.late_layers import LATE

from tests.codemods.facts.flow.followed import TRAINING, followed

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
