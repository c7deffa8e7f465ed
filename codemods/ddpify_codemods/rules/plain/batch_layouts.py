"""DDP656: a tensor is laid out by the number of samples that it has, not by the batch size."""

from __future__ import annotations

import ast
from collections.abc import Iterator

from ...facts.script import Script
from ...rule import Edit, Finding, Replace, Rule
from ...targets import Target
from .words import is_here, program_of


def check(script: Script, target: Target) -> Iterator[Edit | Finding]:
    """Give `x.view(batch_size, …)` the number of samples in x."""
    program = program_of(script)
    for call, there in program.followed.found.batch_layouts.items():
        if not is_here(script, there) or program.per_process:
            continue
        tensor = call.func.value  # type: ignore[attr-defined]
        number = f"{tensor.id}.size(0)" if isinstance(tensor, ast.Name) else "-1"
        yield Replace(call.args[0], number, "the samples that a rank has")


RULE = Rule(
    id="DDP656",
    title="Layouts by the batch size",
    why="""\
A rank has a part of each batch, and `x.view(batch_size, -1)` would put a part of a sample into each row, or end with
an error. The tensor knows how many samples it has.""",
    before="""\
import torch
from torch.utils.data import DataLoader, TensorDataset

batch_size = 16


class Net(torch.nn.Module):
    def __init__(self):
        super().__init__()
        self.features = torch.nn.Conv2d(1, 4, 3)
        self.head = torch.nn.Linear(16, 3)

    def forward(self, x):
        x = self.features(x)
        x = x.view(batch_size, -1)
        return self.head(x)


data = TensorDataset(torch.rand(64, 1, 4, 4), torch.rand(64, 3))
loader = DataLoader(data, batch_size=batch_size)
model = Net()
optimizer = torch.optim.SGD(model.parameters(), lr=0.1)
for x, y in loader:
    loss = torch.nn.functional.mse_loss(model(x), y)
    optimizer.zero_grad()
    loss.backward()
    optimizer.step()
""",
    after="""\
import os
import sys

import torch
import torch.distributed as dist
from torch.nn.parallel import DistributedDataParallel
from torch.utils.data import DataLoader, TensorDataset
from torch.utils.data.distributed import DistributedSampler

dist.init_process_group("gloo")
if dist.get_rank() != 0:
    sys.stdout = open(os.devnull, "w")  # rank 0 prints
torch.manual_seed(0)

batch_size = 16


class Net(torch.nn.Module):
    def __init__(self):
        super().__init__()
        self.features = torch.nn.Conv2d(1, 4, 3)
        self.head = torch.nn.Linear(16, 3)

    def forward(self, x):
        x = self.features(x)
        x = x.view(x.size(0), -1)
        return self.head(x)


data = TensorDataset(torch.rand(64, 1, 4, 4), torch.rand(64, 3))
loader = DataLoader(
    data,
    batch_size=batch_size // dist.get_world_size(),
    sampler=DistributedSampler(data, shuffle=False),
)
model = Net()
ddp_model = DistributedDataParallel(model)
optimizer = torch.optim.SGD(model.parameters(), lr=0.1)
for x, y in loader:
    loss = torch.nn.functional.mse_loss(ddp_model(x), y)
    optimizer.zero_grad()
    loss.backward()
    optimizer.step()

dist.destroy_process_group()
""",
    check=check,
    target="cpu",
)
