"""DDP707: an evaluation of the samples of training takes their own loader."""

from __future__ import annotations

import ast
from collections.abc import Iterator

from ...facts.plain_code import evaluators, is_call_of
from ...facts.script import Script
from ...rule import Delete, Edit, Finding, Replace, Rule
from ...targets import Target
from .rank_zero import is_bare


def check(script: Script, target: Target) -> Iterator[Edit | Finding]:
    """Take out the functions that make a loader without the samples that come twice, and their calls."""
    own = evaluators(script)
    for function in script.find(ast.FunctionDef):
        if function.name in own:
            yield Delete(function, "leave out what makes a loader for an evaluation")
    called: set[ast.AST] = set()
    for call in script.find(ast.Call):
        if is_call_of(call, own):
            called.add(call.func)
            message = "no sample of one process comes twice"
            yield Replace(call, "{}", message, parts=(call.args[0],), bare=is_bare(script, call, call.args[0]))
    for name in script.find(ast.Name):
        if name.id in own and name not in called:
            message = f"{name.id} is used in a way of its own here"
            yield Finding(RULE.id, "refused", name.lineno, message, "call it where an evaluation begins")


RULE = Rule(
    id="DDP707",
    title="Evaluate the samples of training as they come",
    why="""\
The inverse of DDP620. The function is known by what it does; it goes only from where a conversion writes it, for a
loader of the author's own may have another order.""",
    before='''\
import os
import sys

import torch
import torch.distributed as dist
from torch.nn.parallel import DistributedDataParallel
from torch.utils.data import DataLoader, TensorDataset
from torch.utils.data.distributed import DistributedSampler


def sum_over_ranks(value):
    """The sum of a number, a list of numbers or a tensor over all processes."""
    total = torch.as_tensor(value).detach().contiguous().clone()
    dist.all_reduce(total)
    return total.to(value.device) if torch.is_tensor(value) else total.tolist()


def each_sample_once(loader):
    """This rank's samples of what a loader loads, none twice, in the order of the data set."""
    return torch.utils.data.DataLoader(
        loader.dataset,
        batch_size=loader.batch_size,
        sampler=range(dist.get_rank(), len(loader.dataset), dist.get_world_size()),
        num_workers=loader.num_workers,
        collate_fn=loader.collate_fn,
        pin_memory=loader.pin_memory,
    )


dist.init_process_group("gloo")
if dist.get_rank() != 0:
    sys.stdout = open(os.devnull, "w")  # rank 0 prints
torch.manual_seed(0)

train_set = TensorDataset(torch.rand(65, 4), torch.randint(2, (65,)))
train_loader = DataLoader(
    train_set,
    batch_size=8 // dist.get_world_size(),
    sampler=DistributedSampler(train_set, shuffle=True),
)
model = torch.nn.Linear(4, 2)
ddp_model = DistributedDataParallel(model)
optimizer = torch.optim.SGD(model.parameters(), lr=0.1)
for x, y in train_loader:
    loss = torch.nn.functional.cross_entropy(ddp_model(x), y)
    optimizer.zero_grad()
    loss.backward()
    optimizer.step()
correct = 0
with torch.no_grad():
    for x, y in each_sample_once(train_loader):
        correct += (model(x).argmax(1) == y).sum().item()
correct = sum_over_ranks(correct)
print(correct / len(train_loader.dataset))
dist.destroy_process_group()
''',
    after="""\
import torch
from torch.utils.data import DataLoader, TensorDataset


torch.manual_seed(0)

train_set = TensorDataset(torch.rand(65, 4), torch.randint(2, (65,)))
train_loader = DataLoader(train_set, batch_size=8, shuffle=True)
model = torch.nn.Linear(4, 2)
optimizer = torch.optim.SGD(model.parameters(), lr=0.1)
for x, y in train_loader:
    loss = torch.nn.functional.cross_entropy(model(x), y)
    optimizer.zero_grad()
    loss.backward()
    optimizer.step()
correct = 0
with torch.no_grad():
    for x, y in train_loader:
        correct += (model(x).argmax(1) == y).sum().item()
print(correct / len(train_loader.dataset))
""",
    check=check,
    target="none",
)
