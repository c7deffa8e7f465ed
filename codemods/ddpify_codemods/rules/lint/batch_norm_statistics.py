"""DDP517: BatchNorm that sees this rank's rows only (M8)."""

from __future__ import annotations

import ast
from collections.abc import Iterator

from ...facts.hand_written import wrap_calls
from ...facts.script import Script
from ...rule import Edit, Finding, Rule
from ...targets import Target

_LAYERS = ("BatchNorm1d", "BatchNorm2d", "BatchNorm3d")


def check(script: Script, target: Target) -> Iterator[Edit | Finding]:
    """Report the first BatchNorm of a script that wraps a model and never mentions synchronised statistics."""
    if not wrap_calls(script) or "SyncBatchNorm" in script.text or "convert_syncbn_model" in script.text:
        return
    if any(_sends_buffers(script, loop) for loop in script.find(ast.For)):
        return  # whoever evaluates with the statistics of one rank knows that each has its own
    for call in script.find(ast.Call):
        if script.qualified(call.func) in {f"torch.nn.{layer}" for layer in _LAYERS}:
            message = "each rank normalises with the statistics of its own rows, and keeps its own running statistics"
            remedy = "on GPUs: model = nn.SyncBatchNorm.convert_sync_batchnorm(model), before it is wrapped"
            yield Finding(RULE.id, "note", call.lineno, message, remedy)
            return


def _sends_buffers(script: Script, loop: ast.For) -> bool:
    """`for buffer in model.buffers(): dist.broadcast(buffer, 0)`"""
    over = isinstance(loop.iter, ast.Call) and ast.unparse(loop.iter.func).endswith(".buffers")
    calls = (node for node in ast.walk(loop) if isinstance(node, ast.Call))
    return over and any(script.qualified(call.func) == "torch.distributed.broadcast" for call in calls)


RULE = Rule(
    id="DDP517",
    title="Batch statistics are those of the whole batch",
    why="""\
DistributedDataParallel does not touch the statistics of BatchNorm: a batch of 256 on 8 ranks is normalised in groups of
32. Small groups train differently, and the running statistics that are evaluated and saved are those of rank 0 (M8,
M9). On CPUs torch has no synchronised BatchNorm.""",
    before="""\
import torch
import torch.distributed as dist
from torch import nn
from torch.nn.parallel import DistributedDataParallel as DDP
from torch.utils.data import DataLoader, DistributedSampler, TensorDataset

dist.init_process_group("nccl")
torch.cuda.set_device(dist.get_rank())
dataset = TensorDataset(torch.rand(64, 4), torch.rand(64, 1))
loader = DataLoader(dataset, batch_size=8, sampler=DistributedSampler(dataset))
net = nn.Sequential(nn.Linear(4, 8), nn.BatchNorm1d(8), nn.Linear(8, 1)).cuda()
model = DDP(net)
optimizer = torch.optim.SGD(model.parameters(), lr=0.1)
for x, y in loader:
    optimizer.zero_grad()
    loss = nn.functional.mse_loss(model(x.cuda()), y.cuda())
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
torch.cuda.set_device(dist.get_rank())
dataset = TensorDataset(torch.rand(64, 4), torch.rand(64, 1))
loader = DataLoader(dataset, batch_size=8, sampler=DistributedSampler(dataset))
net = nn.Sequential(nn.Linear(4, 8), nn.BatchNorm1d(8), nn.Linear(8, 1)).cuda()
net = nn.SyncBatchNorm.convert_sync_batchnorm(net)
model = DDP(net)
optimizer = torch.optim.SGD(model.parameters(), lr=0.1)
for x, y in loader:
    optimizer.zero_grad()
    loss = nn.functional.mse_loss(model(x.cuda()), y.cuda())
    loss.backward()
    optimizer.step()
""",
    check=check,
)
