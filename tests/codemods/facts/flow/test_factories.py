"""Models that a function makes and gives back are others at each place that calls it."""

from __future__ import annotations

import pytest

from .followed import wrapped

HEAD = """\
import torch
import torch.nn as nn
import torch.nn.functional as F
import torchvision
from torch.utils.data import DataLoader, TensorDataset
train_set = TensorDataset(torch.rand(64, 4), torch.randint(3, (64,)))
train_loader = DataLoader(train_set, batch_size=8, shuffle=True)
class Net(nn.Module):
    def __init__(self):
        super().__init__()
        self.layer = nn.Linear(4, 3)
    def forward(self, x):
        return self.layer(x)
"""
TRAINING = """\
one = torch.optim.SGD(first.parameters(), lr=0.1)
two = torch.optim.SGD(second.parameters(), lr=0.1)
for x, y in train_loader:
    loss = F.cross_entropy(first(x), y) + F.cross_entropy(second(x), y)
    loss.backward()
    one.step()
    two.step()
    one.zero_grad()
    two.zero_grad()
"""
BUILD = """\
def build():
    {made}
first = build()
second = build()
"""


@pytest.mark.parametrize(
    "made",
    [
        "return Net()",
        "return Net().to('cpu').float()",
        "net = Net()\n    net = net.float()\n    return net.eval()",
        "net: nn.Module = Net()\n    return net",
        "return torchvision.models.vit_b_16()",
        "def inner():\n        return Net()\n    return inner()",
    ],
)
def test_each_call_of_a_function_that_makes_a_model_makes_another(made: str) -> None:
    found = wrapped(BUILD.format(made=made) + TRAINING, HEAD)
    assert not found.problems
    assert [each.model for each in found.models] == ["first", "second"]


@pytest.mark.parametrize(
    "made",
    [
        "return shared",  # made once
        "return [Net()][0]",  # what a list holds is not followed so far
    ],
)
def test_what_a_function_only_hands_on_is_one_model(made: str) -> None:
    found = wrapped("shared = Net()\n" + BUILD.format(made=made) + TRAINING, HEAD)
    assert found.problems


PARTS = """\
class Parts(nn.Module):
    def __init__(self):
        super().__init__()
        self.body = nn.Linear(4, 5)
        self.head = nn.Linear(5, 3)
    def forward(self, x):
        return self.head(self.body(x))
def make():
    return Parts()
def small():
    return make()
def large():
    return make()
import sys
model = {"small": small, "large": large}[sys.argv[1]]()
optimizer = torch.optim.SGD(params=[{"params": model.body.parameters()}, {"params": model.head.parameters()}], lr=0.1)
for x, y in train_loader:
    loss = F.cross_entropy(model(x), y)
    optimizer.zero_grad()
    loss.backward()
    optimizer.step()
"""


def test_functions_of_which_one_is_chosen_make_one_model() -> None:
    """An optimizer that is given parts has to know of which models."""
    found = wrapped(PARTS, HEAD)
    assert not found.problems
    assert [each.model for each in found.models] == ["model"]


def test_a_function_that_is_called_in_a_loop_makes_one() -> None:
    source = BUILD.format(made="return Net()").partition("first =")[0]
    loop = "for fold in range(3):\n    net = build()\n    optimizer = torch.optim.SGD(net.parameters(), lr=0.1)\n"
    step = "    for x, y in train_loader:\n        loss = F.cross_entropy(net(x), y)\n        loss.backward()\n"
    found = wrapped(source + loop + step + "        optimizer.step()\n        optimizer.zero_grad()\n", HEAD)
    assert not found.problems
    assert [each.model for each in found.models] == ["net"]
