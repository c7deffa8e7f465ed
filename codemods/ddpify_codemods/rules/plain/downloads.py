"""DDP608: rank 0 downloads first; the others find what it has fetched."""

from __future__ import annotations

import ast
from collections.abc import Iterator

from ...facts.script import Script
from ...rule import Edit, Finding, Guard, Insert, Replace, Rule
from ...targets import Target
from ..exact import downloads
from .words import REMEDY


def check(script: Script, target: Target) -> Iterator[Edit | Finding]:
    """Put barriers around what downloads, so that rank 0 comes first."""
    words = target.words
    done: set[ast.stmt] = set()
    for item in downloads.check(script, target):
        if not isinstance(item, Replace):
            yield item
            continue
        statement = script.statement(item.node)
        if statement in done:
            continue
        done.add(statement)
        if isinstance(statement, ast.Return) or not isinstance(statement, ast.Assign | ast.AnnAssign | ast.Expr):
            message = "this downloads in a statement before and after which the ranks cannot wait"
            yield Finding(RULE.id, "refused", statement.lineno, message, f"give what it makes a name, or {REMEDY}")
            continue
        message = "download on rank 0 first"
        if words.first:
            yield Guard(statement, words.first, message, modules=words.imports, is_context=True)
            continue
        yield Insert(statement, f"if {words.rank} != 0:\n    {words.barrier}", message, modules=words.imports)
        after = f"if {words.is_rank_0}:\n    {words.barrier}"
        yield Insert(statement, after, message, "after", modules=words.imports)


RULE = Rule(
    id="DDP608",
    title="Download on rank 0 first",
    why="""\
Ranks that download the same file at the same time write over each other (I4). The others wait at a barrier until rank 0
has the file, and then find it.""",
    before="""\
import torch
from torch.utils.data import DataLoader
from torchvision import datasets, transforms

train_set = datasets.MNIST("data", download=True, transform=transforms.ToTensor())
loader = DataLoader(train_set, batch_size=64, shuffle=True)
model = torch.nn.Sequential(torch.nn.Flatten(), torch.nn.Linear(784, 10))
optimizer = torch.optim.SGD(model.parameters(), lr=0.1)
for x, y in loader:
    loss = torch.nn.functional.cross_entropy(model(x), y)
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
from torch.utils.data import DataLoader
from torch.utils.data.distributed import DistributedSampler
from torchvision import datasets, transforms

dist.init_process_group("gloo")
if dist.get_rank() != 0:
    sys.stdout = open(os.devnull, "w")  # rank 0 prints
torch.manual_seed(0)
if dist.get_rank() != 0:
    dist.barrier()

train_set = datasets.MNIST("data", download=True, transform=transforms.ToTensor())
if dist.get_rank() == 0:
    dist.barrier()
loader = DataLoader(
    train_set,
    batch_size=64 // dist.get_world_size(),
    sampler=DistributedSampler(train_set, shuffle=True),
)
model = torch.nn.Sequential(torch.nn.Flatten(), torch.nn.Linear(784, 10))
ddp_model = DistributedDataParallel(model)
optimizer = torch.optim.SGD(model.parameters(), lr=0.1)
for x, y in loader:
    loss = torch.nn.functional.cross_entropy(ddp_model(x), y)
    optimizer.zero_grad()
    loss.backward()
    optimizer.step()

dist.destroy_process_group()
""",
    check=check,
    target="cpu",
)
