"""DDP620: evaluations take a loader of their own: of the samples of training each once, and undivided where all is
needed of what is divided elsewhere."""

from __future__ import annotations

import ast
from collections.abc import Iterator

from ...facts.flow.one_by_one import BY_NEXT
from ...facts.flow.program import Followed
from ...facts.flow.values import UNEVEN, Loader
from ...facts.header import functions_place
from ...facts.script import Script
from ...rule import Edit, Finding, Insert, Replace, Rule
from ...targets import Target
from .words import REMEDY, is_here, program_of

_HELPER = '''\


def {name}(loader):
    """{text}"""
    return torch.utils.data.DataLoader(
        loader.dataset,
        batch_size=loader.batch_size{times},
        {order}num_workers=loader.num_workers,
        collate_fn=loader.collate_fn,
        pin_memory=loader.pin_memory,{last}
    )
'''
_SHARDED = ("each_sample_once", "This rank's samples of what a loader loads, none twice, in the order of the data set.")
_WHOLE = ("every_sample", "All samples of what a loader loads, in the order of the data set.")
_ALL = ("every_batch", "All batches of what a loader loads, in the order of the data set.")
_MESSAGE = "evaluate each sample of training once"
_UNDIVIDED = "take the batches of all ranks"


def check(script: Script, target: Target) -> Iterator[Edit | Finding]:
    """Give loops that evaluate the samples of training a loader without those that DistributedSampler draws twice."""
    followed = program_of(script).followed
    used: set[str] = set()
    for node, there in sorted(followed.evaluated.items(), key=lambda each: (each[0].lineno, each[0].col_offset)):
        if not is_here(script, there):
            continue
        loaders = [loader for loader, _ in followed.found.sites.get(node, ()) if loader.source is not None]
        ways = {followed.status.get(loader, "whole") for loader in loaders}
        if loaders and {followed.status.get(loader.source) for loader in loaders if loader.source} <= UNEVEN:
            used.add("every_batch")
            yield Replace(node, "every_batch({})", _UNDIVIDED)
            yield _note(node, followed, loaders, "every rank takes all of these batches")
            continue
        if target.words.loader or len(ways) > 1:
            message = "samples of training are evaluated here, some of which DistributedSampler draws twice (D6)"
            yield Finding(RULE.id, "refused", node.lineno, message, REMEDY)
            continue
        name, _ = _SHARDED if ways == {"sharded"} else _WHOLE
        used.add(name)
        yield Replace(node, f"{name}({{}})", _MESSAGE)
        if name == "every_sample":
            yield _note(node, followed, loaders, "every rank evaluates all samples of training")
    yield from _helpers(script, used, target)


def _note(node: ast.expr, followed: Followed, loaders: list[Loader], message: str) -> Finding:
    reasons = {followed.whole[each].reason for each in loaders if each in followed.whole}
    if reasons == {BY_NEXT}:
        message = "every rank takes the same batches here, in the order of the data set"
        return Finding(RULE.id, "note", node.lineno, message, "none needed; --style exact takes those of one process")
    reason = f": {min(reasons)}" if reasons else ""
    return Finding(RULE.id, "note", node.lineno, message + reason, "right, but no faster; --style exact divides it")


def _helpers(script: Script, used: set[str], target: Target) -> Iterator[Insert]:
    words = target.words
    for name, text in (_SHARDED, _WHOLE, _ALL):
        if name not in used:
            continue
        whole = name != "each_sample_once"
        code = _HELPER.format(
            name=name,
            text=text,
            times=f" * {words.world_size}" if name == "every_sample" and not program_of(script).per_process else "",
            order="" if whole else f"sampler={words.shard.format('loader.dataset')},\n        ",
            last="\n        drop_last=loader.drop_last," if whole else "",
        ).rstrip("\n")
        modules = (*words.imports, "import torch")
        message = "a function that makes a loader for an evaluation"
        at, where = functions_place(script)
        yield Insert(at, code, message, where, modules=modules)


RULE = Rule(
    id="DDP620",
    title="Evaluate the samples of training once each",
    why="""\
A loop that takes no step may run over the loader of training, as for the accuracy on the training set.
DistributedSampler fills the ranks' parts up with samples that would count twice there (D6, E1): it gets a loader
without them, in the order of the data set. Where one loop over the loader of an evaluation cannot be divided, as a look
at the first batch, and another one can, the first gets all batches, and the other its rank's samples.""",
    before="""\
import torch
from torch.utils.data import DataLoader, TensorDataset

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
    after='''\
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
    check=check,
    target="cpu",
)
