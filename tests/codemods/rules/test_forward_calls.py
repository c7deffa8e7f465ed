"""Trained modules are called where the script calls their forward (DDP129)."""

from __future__ import annotations

from pathlib import Path

import pytest
from ddpify_codemods import convert

SCRIPT = """\
import torch
from torch.utils.data import DataLoader, TensorDataset

loader = DataLoader(TensorDataset(torch.rand(64, 4), torch.rand(64, 1)), batch_size=8, shuffle=True)
criterion = torch.nn.MSELoss()
other = torch.nn.Linear(4, 1)


def train(net, optimizer):
    for x, y in loader:
        loss = criterion.forward(net.forward(x), y) + other.forward(x).mean() * 0
        optimizer.zero_grad()
        loss.backward()
        optimizer.step()


model = torch.nn.Linear(4, 1)
train(model, torch.optim.SGD(model.parameters(), lr=0.1))
print(model.forward(torch.rand(3, 4)))
"""


def converted(script: str) -> str:
    return convert({Path("train.py"): script}, "cpu")[Path("train.py")].code


def test_by_its_name_and_as_a_parameter() -> None:
    code = converted(SCRIPT)
    assert "criterion.forward(net(x), y) + other.forward(x)" in code and "print(model(torch.rand(3, 4)))" in code


@pytest.mark.parametrize(
    ("before", "after"),
    [
        ("train(model, torch", "model.register_forward_hook(print)\ntrain(model, torch"),
        ("train(model, torch.optim.SGD(model", "train(other, torch.optim.SGD(other"),
    ],
)
def test_hooks_do_not_run_that_did_not_and_other_modules_stay(before: str, after: str) -> None:
    assert "print(model.forward(torch.rand(3, 4)))" in converted(SCRIPT.replace(before, after))


PLAIN = """\
import torch
from torch.utils.data import DataLoader, TensorDataset
class Task{bases}:
    def __init__(self):
        {init}
        self.net = torch.nn.Linear(4, 1)
    def forward(self, x):
        return self.net(x)
    def step(self, x):
        return self.forward(x).mean()
    def parameters(self):
        return self.net.parameters()
    def optimizer(self):
        return torch.optim.SGD(self.parameters(), lr=0.1)
task = Task()
optimizer = task.optimizer()
for x, y in DataLoader(TensorDataset(torch.rand(64, 4), torch.rand(64, 1)), batch_size=8):
    task.step(x).backward()
    optimizer.step()
print(task.forward(torch.rand(3, 4)))
"""


@pytest.mark.parametrize(
    ("bases", "init", "called"), [("", "pass", False), ("(torch.nn.Module)", "super().__init__()", True)]
)
def test_an_object_that_is_no_module_is_not_called(bases: str, init: str, called: bool) -> None:
    code = converted(PLAIN.format(bases=bases, init=init))
    assert ("return self(x).mean()" in code) is called
