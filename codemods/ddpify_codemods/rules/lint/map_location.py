"""DDP515: torch.load without map_location, which puts all ranks on one GPU (I8)."""

from __future__ import annotations

import ast
from collections.abc import Iterator

from ...facts.hand_written import wrap_calls
from ...facts.script import Script
from ...rule import Edit, Finding, Rule
from ...targets import Target


def check(script: Script, target: Target) -> Iterator[Edit | Finding]:
    """Report torch.load without a device, in scripts for GPUs."""
    if wrap_calls(script):
        for call in loads_anywhere(script):
            message = "tensors go back to the GPU that they were saved from: every process takes memory on cuda:0"
            yield Finding(RULE.id, "warning", call.lineno, message, 'pass map_location="cpu", or this rank\'s device')


def loads_anywhere(script: Script) -> Iterator[ast.Call]:
    """The calls of torch.load that leave it to the file where its tensors go, in a script that speaks of GPUs."""
    if "cuda" not in script.text:
        return
    loads = [call for call in script.find(ast.Call) if script.qualified(call.func) == "torch.load" and call.args]
    placed = {ast.unparse(call.args[0]) for call in loads if _says_where(call)}  # the other branch of a condition
    for call in loads:
        if not _says_where(call) and ast.unparse(call.args[0]) not in placed:
            yield call


def _says_where(call: ast.Call) -> bool:
    return len(call.args) > 1 or any(word.arg in ("map_location", None) for word in call.keywords)


RULE = Rule(
    id="DDP515",
    title="Checkpoints are loaded onto the own device",
    why="""\
A tensor that was saved from cuda:0 is loaded onto cuda:0, by every process: its memory fills up with one copy per rank
(I8). `map_location` says where to.""",
    before="""\
import torch
import torch.distributed as dist
from torch import nn
from torch.nn.parallel import DistributedDataParallel as DDP
from torch.utils.data import DataLoader, DistributedSampler, TensorDataset

dist.init_process_group("nccl")
rank, world_size = dist.get_rank(), dist.get_world_size()
dataset = TensorDataset(torch.rand(64, 4), torch.rand(64, 1))
loader = DataLoader(dataset, batch_size=8, sampler=DistributedSampler(dataset))
net = nn.Linear(4, 1)
net.load_state_dict(torch.load("start.pt"))
model = DDP(net.to(f"cuda:{rank}"))
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

dist.init_process_group("nccl")
rank, world_size = dist.get_rank(), dist.get_world_size()
dataset = TensorDataset(torch.rand(64, 4), torch.rand(64, 1))
loader = DataLoader(dataset, batch_size=8, sampler=DistributedSampler(dataset))
net = nn.Linear(4, 1)
net.load_state_dict(torch.load("start.pt", map_location="cpu"))
model = DDP(net.to(f"cuda:{rank}"))
optimizer = torch.optim.SGD(model.parameters(), lr=0.1)
for x, y in loader:
    optimizer.zero_grad()
    loss = nn.functional.mse_loss(model(x), y)
    loss.backward()
    optimizer.step()
""",
    check=check,
)
