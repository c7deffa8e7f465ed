"""DDP506: a learning rate or an end of training that depends on this rank's numbers (L19, E4)."""

from __future__ import annotations

import ast
from collections.abc import Iterator

from ..facts.hand_written import loaders, reduces, values_of, wrap_calls
from ..facts.script import Script
from ..rule import Edit, Finding, Rule
from ..targets import Target

_PLATEAU = frozenset({"torch.optim.lr_scheduler.ReduceLROnPlateau"})


def check(script: Script, target: Target) -> Iterator[Edit | Finding]:
    """Report ReduceLROnPlateau in a script that shares out its data and brings no numbers together."""
    if not wrap_calls(script) or reduces(script) or not any(loader.sampler for loader in loaders(script)):
        return
    for call in script.find(ast.Call):
        if not (isinstance(call.func, ast.Attribute) and call.func.attr == "step" and call.args):
            continue
        if values_of(script, call.func.value, _PLATEAU):
            message = (
                "this rank's number decides about the learning rate: the ranks' rates, then their weights, go apart"
            )
            remedy = "average the number over the ranks first: dist.all_reduce(loss); loss /= dist.get_world_size()"
            yield Finding(RULE.id, "warning", call.lineno, message, remedy)


RULE = Rule(
    id="DDP506",
    title="Decisions are taken from global numbers",
    why="""\
DistributedDataParallel averages gradients, not learning rates. A scheduler that follows the loss of this rank's shard
lowers the rate on one rank earlier than on another; from then on the weights differ, and nothing notices (L19).""",
    before="""\
import torch
import torch.distributed as dist
from torch import nn
from torch.nn.parallel import DistributedDataParallel as DDP
from torch.utils.data import DataLoader, DistributedSampler, TensorDataset

dist.init_process_group("gloo")
train_set = TensorDataset(torch.rand(64, 4), torch.rand(64, 1))
val_set = TensorDataset(torch.rand(20, 4), torch.rand(20, 1))
train_loader = DataLoader(train_set, batch_size=8, sampler=DistributedSampler(train_set))
val_loader = DataLoader(val_set, batch_size=10, sampler=DistributedSampler(val_set, drop_last=True))
model = DDP(nn.Linear(4, 1))
optimizer = torch.optim.SGD(model.parameters(), lr=0.1)
scheduler = torch.optim.lr_scheduler.ReduceLROnPlateau(optimizer)
for epoch in range(3):
    train_loader.sampler.set_epoch(epoch)
    for x, y in train_loader:
        optimizer.zero_grad()
        nn.functional.mse_loss(model(x), y).backward()
        optimizer.step()
    loss = torch.zeros(1)
    with torch.no_grad():
        for x, y in val_loader:
            loss += nn.functional.mse_loss(model(x), y)
    scheduler.step(loss.item())
""",
    after="""\
import torch
import torch.distributed as dist
from torch import nn
from torch.nn.parallel import DistributedDataParallel as DDP
from torch.utils.data import DataLoader, DistributedSampler, TensorDataset

dist.init_process_group("gloo")
train_set = TensorDataset(torch.rand(64, 4), torch.rand(64, 1))
val_set = TensorDataset(torch.rand(20, 4), torch.rand(20, 1))
train_loader = DataLoader(train_set, batch_size=8, sampler=DistributedSampler(train_set))
val_loader = DataLoader(val_set, batch_size=10, sampler=DistributedSampler(val_set, drop_last=True))
model = DDP(nn.Linear(4, 1))
optimizer = torch.optim.SGD(model.parameters(), lr=0.1)
scheduler = torch.optim.lr_scheduler.ReduceLROnPlateau(optimizer)
for epoch in range(3):
    train_loader.sampler.set_epoch(epoch)
    for x, y in train_loader:
        optimizer.zero_grad()
        nn.functional.mse_loss(model(x), y).backward()
        optimizer.step()
    loss = torch.zeros(1)
    with torch.no_grad():
        for x, y in val_loader:
            loss += nn.functional.mse_loss(model(x), y)
    dist.all_reduce(loss)
    scheduler.step(loss.item() / dist.get_world_size())
""",
    check=check,
    advice=True,
)
