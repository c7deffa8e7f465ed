"""DDP627: a picture of samples that cannot be brought together is one of rank 0's samples, which is said."""

from __future__ import annotations

import ast
from collections.abc import Iterator

from ...facts.script import Script
from ...rule import Edit, Finding, Rule
from ...targets import Target
from .words import is_here, program_of


def check(script: Script, target: Target) -> Iterator[Edit | Finding]:
    """Say which pictures are drawn of a part of a batch."""
    found = program_of(script).followed.found
    for call, other in sorted(found.pictures.items(), key=lambda each: each[0].lineno):
        divided = target.words.name != "torch" and any(part in found.reductions for part in ast.walk(call))
        if is_here(script, other) and (call in found.partial or divided):
            message = "this picture shows samples of rank 0 alone: its part of the batch, and not the whole"
            yield Finding(RULE.id, "note", call.lineno, message, "none needed; --style exact draws the whole batch")


RULE = Rule(
    id="DDP627",
    title="Pictures of samples",
    why="""\
Images that a generator makes, or that a batch holds, are looked at and not computed with. They are those of all ranks
(DDP605) where that can be told; else rank 0 draws those that it has: another part of the data, and fewer where a batch
is smaller than the picture (I2, D15).""",
    before="""\
import torch
from torch.utils.data import DataLoader, TensorDataset
from torchvision.utils import save_image

loader = DataLoader(TensorDataset(torch.rand(64, 1, 8, 8)), batch_size=8, shuffle=True)
model = torch.nn.Conv2d(1, 1, 3, padding=1)
optimizer = torch.optim.SGD(model.parameters(), lr=0.1)
for (x,) in loader:
    y = model(x)
    loss = torch.nn.functional.mse_loss(y, x)
    optimizer.zero_grad()
    loss.backward()
    optimizer.step()
    bright = y.data[y.data.amax((1, 2, 3)) > 0.5]
    save_image(bright, "last.png")
""",
    after="""\
import os
import sys

import torch
import torch.distributed as dist
from torch.nn.parallel import DistributedDataParallel
from torch.utils.data import DataLoader, TensorDataset
from torch.utils.data.distributed import DistributedSampler
from torchvision.utils import save_image

dist.init_process_group("gloo")
if dist.get_rank() != 0:
    sys.stdout = open(os.devnull, "w")  # rank 0 prints
torch.manual_seed(0)

loader = DataLoader(
    dataset := TensorDataset(torch.rand(64, 1, 8, 8)),
    batch_size=8 // dist.get_world_size(),
    sampler=DistributedSampler(dataset, shuffle=True),
)
model = torch.nn.Conv2d(1, 1, 3, padding=1)
ddp_model = DistributedDataParallel(model)
optimizer = torch.optim.SGD(model.parameters(), lr=0.1)
for (x,) in loader:
    y = ddp_model(x)
    loss = torch.nn.functional.mse_loss(y, x)
    optimizer.zero_grad()
    loss.backward()
    optimizer.step()
    bright = y.data[y.data.amax((1, 2, 3)) > 0.5]
    if dist.get_rank() == 0:
        save_image(bright, "last.png")

dist.destroy_process_group()
""",
    check=check,
    target="cpu",
)
