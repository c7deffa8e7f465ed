"""DDP655: workers of loaders that are seeded with a number draw other noise on each rank."""

from __future__ import annotations

from collections.abc import Iterator

from ...facts.script import Script
from ...facts.seeds import fixed_worker_seeds
from ...plain_words import TORCH
from ...rule import Edit, Finding, Replace, Rule
from ...targets import Target

RANK = 'int(os.environ["RANK"])'  # as the launcher says it: a worker that is spawned has joined no processes
_APART = 1000  # more workers than a rank has


def check(script: Script, target: Target) -> Iterator[Edit | Finding]:
    """Seed the workers of each rank with another number."""
    if target.words.name != TORCH.name:  # DDP611 says so
        return
    for call in fixed_worker_seeds(script):
        message = "seed the workers of each rank otherwise"
        yield Replace(call.args[0], f"{{}} + {_APART} * {RANK}", message, modules=("import os",))


RULE = Rule(
    id="DDP655",
    title="Workers with seeds of their own on each rank",
    why="""\
A `worker_init_fn` that seeds with a number of its own seeds the workers of all ranks alike: they would draw the same
noise for other samples (S2), and a data set that draws which sample it gives, the same samples.""",
    before="""\
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
    after="""\
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
    check=check,
    target="cpu",
)
