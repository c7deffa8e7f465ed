"""DDP606: a loss that is a sum over the batch is scaled, since DistributedDataParallel averages over ranks."""

from __future__ import annotations

import ast
from collections.abc import Iterator

from ...facts.script import Script
from ...rule import Edit, Finding, Replace, Rule
from ...targets import Target
from .words import REMEDY, is_here, program_of


def check(script: Script, target: Target) -> Iterator[Edit | Finding]:
    """Multiply losses that are sums by the number of ranks where their gradients are computed."""
    found = program_of(script).followed.found
    for call, kinds in sorted(found.backwards.items(), key=lambda each: each[0].lineno):
        if not is_here(script, found.scripts[call]) or "sum" not in kinds:
            continue
        if kinds != {"sum"}:
            message = "the loss is a sum here in one case, and not in another"
            yield Finding(RULE.id, "refused", call.lineno, message, REMEDY)
            continue
        assert isinstance(call.func, ast.Attribute)
        message = "a sum over the batch: the average over ranks would be too small"
        yield Replace(call.func.value, f"({{}} * {target.words.world_size})", message, modules=target.words.imports)


RULE = Rule(
    id="DDP606",
    title="Scale a summed loss",
    why="""\
DistributedDataParallel averages gradients over the ranks. That is right for a mean over the batch, and W times too
small for a sum (L2).""",
    before="""\
import torch
from torch.utils.data import DataLoader, TensorDataset

dataset = TensorDataset(torch.rand(64, 4), torch.rand(64, 1))
loader = DataLoader(dataset, batch_size=8, shuffle=True)
model = torch.nn.Linear(4, 1)
optimizer = torch.optim.SGD(model.parameters(), lr=0.001)
for x, y in loader:
    loss = torch.nn.functional.mse_loss(model(x), y, reduction="sum")
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

dataset = TensorDataset(torch.rand(64, 4), torch.rand(64, 1))
loader = DataLoader(
    dataset,
    batch_size=8 // dist.get_world_size(),
    sampler=DistributedSampler(dataset, shuffle=True),
)
model = torch.nn.Linear(4, 1)
ddp_model = DistributedDataParallel(model)
optimizer = torch.optim.SGD(model.parameters(), lr=0.001)
for x, y in loader:
    loss = torch.nn.functional.mse_loss(ddp_model(x), y, reduction="sum")
    optimizer.zero_grad()
    (loss * dist.get_world_size()).backward()
    optimizer.step()

dist.destroy_process_group()
""",
    check=check,
    target="cpu",
)
