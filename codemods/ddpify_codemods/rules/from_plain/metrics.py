"""DDP712: metrics are made as for one process."""

from __future__ import annotations

import ast
from collections.abc import Iterator

from ...facts.script import Script
from ...facts.sync_metrics import makes_metric
from ...rule import ChangeArgument, Edit, Finding, Rule
from ...targets import Target


def check(script: Script, target: Target) -> Iterator[Edit | Finding]:
    """Leave out what keeps a metric from asking other processes."""
    for call in script.find(ast.Call):
        said = (ast.unparse(word) for word in call.keywords)
        if "sync_on_compute=False" in said and makes_metric(script, call):
            yield ChangeArgument(call, "", "", "make the metric of one process", "sync_on_compute")


RULE = Rule(
    id="DDP712",
    title="Make the metrics of one process",
    why="""\
The inverse of DDP658: one process has no others to ask.""",
    before='''\
import os
import sys

import torch
import torch.distributed as dist
from torch.nn.parallel import DistributedDataParallel
from torch.utils.data import DataLoader, TensorDataset
from torch.utils.data.distributed import DistributedSampler
from torchmetrics import MeanMetric


def mean_over_ranks(value):
    """The mean of a number, a list of numbers or a tensor over all processes."""
    total = torch.as_tensor(value).detach().contiguous().clone()
    dist.all_reduce(total)
    total = total / dist.get_world_size()
    return total.to(value.device) if torch.is_tensor(value) else total.tolist()


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
optimizer = torch.optim.SGD(model.parameters(), lr=0.1)
mean = MeanMetric(sync_on_compute=False)
for x, y in loader:
    loss = torch.nn.functional.mse_loss(ddp_model(x), y)
    optimizer.zero_grad()
    loss.backward()
    optimizer.step()
    mean.update(mean_over_ranks(loss.item()))
print(mean.compute().item())
dist.destroy_process_group()
''',
    after="""\
import torch
from torch.utils.data import DataLoader, TensorDataset
from torchmetrics import MeanMetric


torch.manual_seed(0)

dataset = TensorDataset(torch.rand(64, 4), torch.rand(64, 1))
loader = DataLoader(dataset, batch_size=8, shuffle=True)
model = torch.nn.Linear(4, 1)
optimizer = torch.optim.SGD(model.parameters(), lr=0.1)
mean = MeanMetric()
for x, y in loader:
    loss = torch.nn.functional.mse_loss(model(x), y)
    optimizer.zero_grad()
    loss.backward()
    optimizer.step()
    mean.update(loss.item())
print(mean.compute().item())
""",
    check=check,
    target="none",
)
