"""DDP709: a loader has the samples that its sampler draws."""

from __future__ import annotations

import ast
from collections.abc import Iterator

from ...facts.plain_code import sampler_wrappers
from ...facts.script import Script
from ...rule import Delete, Edit, Finding, Replace, Rule
from ...targets import Target

_MESSAGE = "the samples of one process are those of all"


def check(script: Script, target: Target) -> Iterator[Edit | Finding]:
    """Take out the class that gives each process its part, and its calls."""
    own = sampler_wrappers(script)
    for node in script.find(ast.ClassDef):
        if node.name in own:
            yield Delete(node, "leave out what takes a part of what a sampler draws")
    for name in script.find(ast.Name):
        if name.id not in own:
            continue
        call = script.parents[name]
        if isinstance(call, ast.Call) and call.func is name and len(call.args) == 1 and not call.keywords:
            yield Replace(call, "{}", _MESSAGE, parts=(call.args[0],), bare=True)
        else:
            message = f"{name.id} is used in a way of its own here"
            yield Finding(RULE.id, "refused", name.lineno, message, "call it with a sampler")


RULE = Rule(
    id="DDP709",
    title="Draw what the sampler draws",
    why="""\
The inverse of DDP640: in one process, a sampler's part is all that it draws. The class is known by what it does.""",
    before='''\
import os
import sys

import torch
import torch.distributed as dist
from torch.nn.parallel import DistributedDataParallel
from torch.utils.data import DataLoader, TensorDataset, WeightedRandomSampler
from torch.utils.data.distributed import DistributedSampler


class DistributedSamplerWrapper(DistributedSampler):
    """This process's part of what a sampler draws on rank 0."""

    def __init__(self, sampler):
        super().__init__(sampler, shuffle=False)

    def __iter__(self):
        drawn = [list(self.dataset)]
        dist.broadcast_object_list(drawn)
        return (drawn[0][place] for place in super().__iter__())


dist.init_process_group("gloo")
if dist.get_rank() != 0:
    sys.stdout = open(os.devnull, "w")  # rank 0 prints
torch.manual_seed(0)

labels = torch.arange(64) % 5 // 4
data = TensorDataset(torch.rand(64, 4), labels)
sampler = WeightedRandomSampler(1 / torch.bincount(labels)[labels], num_samples=48)
loader = DataLoader(
    data,
    batch_size=8 // dist.get_world_size(),
    sampler=DistributedSamplerWrapper(sampler),
)
model = torch.nn.Linear(4, 2)
ddp_model = DistributedDataParallel(model)
optimizer = torch.optim.SGD(model.parameters(), lr=0.1)
for epoch in range(3):
    for x, y in loader:
        loss = torch.nn.functional.cross_entropy(ddp_model(x), y)
        optimizer.zero_grad()
        loss.backward()
        optimizer.step()

dist.destroy_process_group()
''',
    after="""\
import torch
from torch.utils.data import DataLoader, TensorDataset, WeightedRandomSampler


torch.manual_seed(0)

labels = torch.arange(64) % 5 // 4
data = TensorDataset(torch.rand(64, 4), labels)
sampler = WeightedRandomSampler(1 / torch.bincount(labels)[labels], num_samples=48)
loader = DataLoader(data, batch_size=8, sampler=sampler)
model = torch.nn.Linear(4, 2)
optimizer = torch.optim.SGD(model.parameters(), lr=0.1)
for epoch in range(3):
    for x, y in loader:
        loss = torch.nn.functional.cross_entropy(model(x), y)
        optimizer.zero_grad()
        loss.backward()
        optimizer.step()
""",
    check=check,
    target="none",
)
