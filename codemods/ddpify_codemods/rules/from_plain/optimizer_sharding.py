"""DDP706: the optimizer keeps its state whole."""

from __future__ import annotations

import ast
from collections.abc import Iterator

from ...facts.plain_code import SHARDING
from ...facts.script import Script
from ...rule import ChangeArgument, Delete, Edit, Finding, Replace, Rule
from ...targets import Target


def check(script: Script, target: Target) -> Iterator[Edit | Finding]:
    """Make the optimizer of the class that ZeroRedundancyOptimizer was given."""
    made = False
    for call in script.find(ast.Call):
        classes = [word.value for word in call.keywords if word.arg == "optimizer_class"]
        if script.qualified(call.func) == SHARDING and classes:
            made = True
            message = "keep the optimizer's state whole"
            yield Replace(call.func, ast.unparse(classes[0]), message)
            yield ChangeArgument(call, "", "", message, "optimizer_class")
    for node in script.find(ast.Expr) if made else ():
        func = node.value.func if isinstance(node.value, ast.Call) else None
        if isinstance(func, ast.Attribute) and func.attr == "consolidate_state_dict":
            yield Delete(node, "it is there")


RULE = Rule(
    id="DDP706",
    title="Keep the optimizer's state whole",
    why="""\
The inverse of DDP618: one process keeps all of the optimizer's state, and saves it.""",
    before="""\
import os
import sys

import torch
import torch.distributed as dist
from torch.distributed.optim import ZeroRedundancyOptimizer
from torch.nn.parallel import DistributedDataParallel
from torch.utils.data import DataLoader, TensorDataset
from torch.utils.data.distributed import DistributedSampler

dist.init_process_group("gloo")
if dist.get_rank() != 0:
    sys.stdout = open(os.devnull, "w")  # rank 0 prints
torch.manual_seed(0)

dataset = TensorDataset(torch.rand(64, 4), torch.rand(64, 1))
loader = DataLoader(
    dataset,
    batch_size=8 // dist.get_world_size(),
    sampler=DistributedSampler(dataset, shuffle=True),
)
model = torch.nn.Linear(4, 1)
ddp_model = DistributedDataParallel(model)
optimizer = ZeroRedundancyOptimizer(model.parameters(), optimizer_class=torch.optim.Adam, lr=1e-3)
for x, y in loader:
    loss = torch.nn.functional.mse_loss(ddp_model(x), y)
    optimizer.zero_grad()
    loss.backward()
    optimizer.step()
optimizer.consolidate_state_dict()
if dist.get_rank() == 0:
    torch.save({"model": model.state_dict(), "optimizer": optimizer.state_dict()}, "last.pt")
dist.destroy_process_group()
""",
    after="""\
import torch
from torch.utils.data import DataLoader, TensorDataset

torch.manual_seed(0)

dataset = TensorDataset(torch.rand(64, 4), torch.rand(64, 1))
loader = DataLoader(dataset, batch_size=8, shuffle=True)
model = torch.nn.Linear(4, 1)
optimizer = torch.optim.Adam(model.parameters(), lr=1e-3)
for x, y in loader:
    loss = torch.nn.functional.mse_loss(model(x), y)
    optimizer.zero_grad()
    loss.backward()
    optimizer.step()
torch.save({"model": model.state_dict(), "optimizer": optimizer.state_dict()}, "last.pt")
""",
    check=check,
    target="none",
)
