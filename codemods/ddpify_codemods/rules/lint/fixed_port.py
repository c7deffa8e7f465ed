"""DDP513: a fixed MASTER_PORT (P6)."""

from __future__ import annotations

import ast
from collections.abc import Iterator

from ...facts.hand_written import wrap_calls
from ...facts.script import Script
from ...rule import Edit, Finding, Rule
from ...targets import Target


def check(script: Script, target: Target) -> Iterator[Edit | Finding]:
    """Report assignments of a constant to os.environ["MASTER_PORT"]."""
    if not wrap_calls(script):
        return
    for statement in script.find(ast.Assign):
        place = statement.targets[0]
        is_port = isinstance(place, ast.Subscript) and ast.unparse(place.slice) == "'MASTER_PORT'"
        if is_port and isinstance(statement.value, ast.Constant):
            message = "with a fixed port a second run on the same machine ends with EADDRINUSE"
            yield Finding(
                RULE.id, "note", statement.lineno, message, "start it with torchrun, which sets the address and port"
            )


RULE = Rule(
    id="DDP513",
    title="The port comes from the launcher",
    why="""\
Two runs on one machine, or one that has just crashed, need the same port: "address already in use" (P6). torchrun
chooses a free one (`--standalone`) and passes it in the environment.""",
    before="""\
import os

import torch
import torch.distributed as dist
from torch import nn
from torch.nn.parallel import DistributedDataParallel as DDP
from torch.utils.data import DataLoader, DistributedSampler, TensorDataset

os.environ["MASTER_ADDR"] = "localhost"
os.environ["MASTER_PORT"] = "12355"
dist.init_process_group("gloo")
rank, world_size = dist.get_rank(), dist.get_world_size()
dataset = TensorDataset(torch.rand(64, 4), torch.rand(64, 1))
loader = DataLoader(dataset, batch_size=8, sampler=DistributedSampler(dataset))
model = DDP(nn.Linear(4, 1))
optimizer = torch.optim.SGD(model.parameters(), lr=0.1)
for x, y in loader:
    optimizer.zero_grad()
    loss = nn.functional.mse_loss(model(x), y)
    loss.backward()
    optimizer.step()
""",
    after="""\
import torch
import torch.distributed as dist
from torch import nn
from torch.nn.parallel import DistributedDataParallel as DDP
from torch.utils.data import DataLoader, DistributedSampler, TensorDataset

dist.init_process_group("gloo")
rank, world_size = dist.get_rank(), dist.get_world_size()
dataset = TensorDataset(torch.rand(64, 4), torch.rand(64, 1))
loader = DataLoader(dataset, batch_size=8, sampler=DistributedSampler(dataset))
model = DDP(nn.Linear(4, 1))
optimizer = torch.optim.SGD(model.parameters(), lr=0.1)
for x, y in loader:
    optimizer.zero_grad()
    loss = nn.functional.mse_loss(model(x), y)
    loss.backward()
    optimizer.step()
""",
    check=check,
    target="cpu",
)
