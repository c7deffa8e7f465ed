"""DDP505: a collective, or a forward that is one, behind a rank guard (I11, E5)."""

from __future__ import annotations

import ast
from collections.abc import Iterator

from ...facts.distributed import depends_on_rank, is_one_rank
from ...facts.hand_written import called, is_collective, wrap_calls, wrapped_names
from ...facts.script import Script
from ...rule import Edit, Finding, Rule
from ...targets import Target


def check(script: Script, target: Target) -> Iterator[Edit | Finding]:
    """Report what all ranks have to call, where only one gets to."""
    names = wrapped_names(script)
    if not names and not any(is_collective(script, call) for call in script.find(ast.Call)):
        return
    for branch in script.find(ast.If):
        if not is_one_rank(script, branch.test):
            continue
        for call in (part for statement in branch.body for part in ast.walk(statement) if isinstance(part, ast.Call)):
            if is_collective(script, call) and not _has_counterpart(script, branch, call):
                message = f"{called(call)} waits for every rank, but only one gets here: the run hangs"
                yield Finding(
                    RULE.id, "warning", call.lineno, message, "call it on all ranks, before or after the `if`"
                )
            elif ast.unparse(call.func) in names and _sends_buffers(script):
                message = (
                    "the forward of a DistributedDataParallel model sends its buffers, but only one rank gets here"
                )
                yield Finding(RULE.id, "warning", call.lineno, message, f"call {ast.unparse(call.func)}.module here")


def _has_counterpart(script: Script, branch: ast.If, call: ast.Call) -> bool:
    """Whether the other ranks make the same call: in the `else`, or below another condition on the rank."""
    if any(word.arg == "group" for word in call.keywords):
        return True
    for other in script.find(ast.If):
        elsewhere = other.orelse if other is branch else [*other.body, *other.orelse]
        if other is not branch and not depends_on_rank(script, other.test):
            continue
        calls = (part for statement in elsewhere for part in ast.walk(statement) if isinstance(part, ast.Call))
        if any(part is not call and called(part) == called(call) for part in calls):
            return True
    return False


def _sends_buffers(script: Script) -> bool:
    keeps = any(word.arg == "broadcast_buffers" for call in wrap_calls(script) for word in call.keywords)
    return "BatchNorm" in script.text and not keeps


RULE = Rule(
    id="DDP505",
    title="Collectives are called by every rank",
    why="""\
A collective ends when every rank of the group has called it. Behind `if rank == 0` the other ranks never do, and
rank 0 waits until the timeout (I11). The forward of a DistributedDataParallel model is a collective too when the model
has buffers, in evaluation mode as well (E5): call `model.module` where one rank works alone.""",
    before="""\
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
if rank == 0:
    dist.all_reduce(loss.detach())
    print(loss.item() / world_size)
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
dist.all_reduce(loss.detach())
if rank == 0:
    print(loss.item() / world_size)
""",
    check=check,
    target="cpu",
)
