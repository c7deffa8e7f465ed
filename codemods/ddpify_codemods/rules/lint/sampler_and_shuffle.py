"""DDP503: shuffle=True beside a sampler (D3)."""

from __future__ import annotations

import ast
from collections.abc import Iterator

from ...facts.hand_written import loaders
from ...facts.script import Script
from ...rule import Edit, Finding, Rule
from ...targets import Target


def check(script: Script, target: Target) -> Iterator[Edit | Finding]:
    """Report loaders that get a DistributedSampler and shuffle=True."""
    for loader in loaders(script):
        shuffle = loader.keywords.get("shuffle")
        if loader.sampler is not None and isinstance(shuffle, ast.Constant) and shuffle.value is True:
            message = "DataLoader raises ValueError: it takes a sampler or shuffle=True, not both"
            yield Finding(
                RULE.id, "warning", loader.call.lineno, message, "leave out shuffle=True: the sampler shuffles"
            )


RULE = Rule(
    id="DDP503",
    title="A sampler shuffles by itself",
    why="""\
torch's DataLoader refuses both: "sampler option is mutually exclusive with shuffle" (D3). DistributedSampler shuffles
by default.""",
    before="""\
import torch
import torch.distributed as dist
from torch import nn
from torch.nn.parallel import DistributedDataParallel as DDP
from torch.utils.data import DataLoader, DistributedSampler, TensorDataset

dist.init_process_group("gloo")
dataset = TensorDataset(torch.rand(64, 4), torch.rand(64, 1))
loader = DataLoader(dataset, batch_size=8, shuffle=True, sampler=DistributedSampler(dataset))
model = DDP(nn.Linear(4, 1))
optimizer = torch.optim.SGD(model.parameters(), lr=0.1)
for x, y in loader:
    optimizer.zero_grad()
    nn.functional.mse_loss(model(x), y).backward()
    optimizer.step()
""",
    after="""\
import torch
import torch.distributed as dist
from torch import nn
from torch.nn.parallel import DistributedDataParallel as DDP
from torch.utils.data import DataLoader, DistributedSampler, TensorDataset

dist.init_process_group("gloo")
dataset = TensorDataset(torch.rand(64, 4), torch.rand(64, 1))
loader = DataLoader(dataset, batch_size=8, sampler=DistributedSampler(dataset))
model = DDP(nn.Linear(4, 1))
optimizer = torch.optim.SGD(model.parameters(), lr=0.1)
for x, y in loader:
    optimizer.zero_grad()
    nn.functional.mse_loss(model(x), y).backward()
    optimizer.step()
""",
    check=check,
    target="cpu",
)
