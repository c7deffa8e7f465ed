"""DDP710: workers of loaders are seeded with the number that the script says."""

from __future__ import annotations

import ast
from collections.abc import Iterator

from ...facts.script import Script
from ...rule import Edit, Finding, Replace, Rule
from ...targets import Target
from ..plain.worker_seeds import RANK


def check(script: Script, target: Target) -> Iterator[Edit | Finding]:
    """Leave out what seeds the workers of each rank otherwise."""
    for node in script.find(ast.BinOp):
        added = node.right if isinstance(node.op, ast.Add) and isinstance(node.right, ast.BinOp) else None
        if added is not None and isinstance(added.op, ast.Mult) and ast.unparse(added.right) == _RANK:
            yield Replace(node, "{}", "seed the workers of the one process", parts=(node.left,), bare=True)


_RANK = ast.unparse(ast.parse(RANK))

RULE = Rule(
    id="DDP710",
    title="Seed the workers of the one process",
    why="""\
The inverse of DDP655: what tells the workers of one rank from those of another is no part of their seed.""",
    before="""\
import os
import sys

import numpy as np
import torch
import torch.distributed as dist
from torch.nn.parallel import DistributedDataParallel
from torch.utils.data import DataLoader, Dataset
from torch.utils.data.distributed import DistributedSampler

dist.init_process_group("gloo")
if dist.get_rank() != 0:
    sys.stdout = open(os.devnull, "w")  # rank 0 prints


class Noisy(Dataset):
    def __len__(self):
        return 64

    def __getitem__(self, index):
        return torch.full((4,), index / 64) + np.random.rand(), torch.zeros(1)


def seed_worker(worker):
    np.random.seed(42 + worker + 1000 * int(os.environ["RANK"]))


torch.manual_seed(0)
np.random.seed(0)
loader = DataLoader(
    dataset := Noisy(),
    batch_size=8 // dist.get_world_size(),
    sampler=DistributedSampler(dataset, shuffle=True),
    num_workers=2,
    worker_init_fn=seed_worker,
)
model = torch.nn.Linear(4, 1)
ddp_model = DistributedDataParallel(model)
optimizer = torch.optim.SGD(model.parameters(), lr=0.1)
if dist.get_rank() != 0:  # noise of its own for its samples
    torch.manual_seed(torch.initial_seed() + dist.get_rank())
    np.random.seed(torch.initial_seed() % 2**32)
for x, y in loader:
    loss = torch.nn.functional.mse_loss(ddp_model(x.float()), y)
    optimizer.zero_grad()
    loss.backward()
    optimizer.step()

dist.destroy_process_group()
""",
    after="""\
import numpy as np
import torch
from torch.utils.data import DataLoader, Dataset


class Noisy(Dataset):
    def __len__(self):
        return 64

    def __getitem__(self, index):
        return torch.full((4,), index / 64) + np.random.rand(), torch.zeros(1)


def seed_worker(worker):
    np.random.seed(42 + worker)


torch.manual_seed(0)
np.random.seed(0)
loader = DataLoader(Noisy(), batch_size=8, shuffle=True, num_workers=2, worker_init_fn=seed_worker)
model = torch.nn.Linear(4, 1)
optimizer = torch.optim.SGD(model.parameters(), lr=0.1)
for x, y in loader:
    loss = torch.nn.functional.mse_loss(model(x.float()), y)
    optimizer.zero_grad()
    loss.backward()
    optimizer.step()
""",
    check=check,
    target="none",
)
