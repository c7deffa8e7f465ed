"""DDP640: of what a sampler draws by weights, or more than once, each rank takes its part."""

from __future__ import annotations

import ast
from collections.abc import Iterator

from ...facts.drawing_samplers import changed_in_place, drawing_sampler, draws_without_end
from ...facts.header import functions_place
from ...facts.keyword_dictionaries import drops_last
from ...facts.script import Script
from ...plain_words import Words
from ...rule import Edit, Finding, Insert, Replace, Rule
from ...targets import Target
from .words import REMEDY, program_of

NAME = "DistributedSamplerWrapper"
SAMPLER = "from torch.utils.data.distributed import DistributedSampler"
_CLASS = f'''\


class {NAME}(DistributedSampler):
    """This process's part of what a sampler draws on rank 0."""

    def __init__(self, sampler):
        super().__init__(sampler, shuffle=False{{}})

    def __iter__(self):
        drawn = [list(self.dataset)]
        dist.broadcast_object_list(drawn)
        return (drawn[0][place] for place in super().__iter__())'''


def check(script: Script, target: Target) -> Iterator[Edit | Finding]:
    """Define the class that DDP603 wraps samplers in; refuse what asks such a sampler for more than samples."""
    calls = drawing_loaders(script)
    for node, loaders in program_of(script).followed.found.of_loaders.items():
        drawn = any(drawing_sampler(each.script, each.call) is not None for each in loaders)
        if node in script.parents and node.attr == "sampler" and drawn:
            message = "this sampler is another one on the ranks, each of which draws a part"
            yield Finding(RULE.id, "refused", node.lineno, message, REMEDY)
    if not calls:
        return
    if any(getattr(node, "name", "") == NAME for node in script.tree.body):
        message = f"the file has a {NAME} of its own"
        yield Finding(RULE.id, "refused", calls[0].lineno, message, "give that another name")
    drops = {drops_last(script, each) for each in calls}  # of samples that come twice there could be one more
    if len(drops) > 1 or None in drops:
        message = "whether loaders with such samplers drop their last batch is only known in the run, or not alike"
        yield Finding(RULE.id, "refused", calls[0].lineno, message, REMEDY)
    at, where = functions_place(script)
    message, rest = "a sampler that gives each rank its part", ", drop_last=True" if True in drops else ""
    yield Insert(at, _CLASS.format(rest), message, where, modules=(*target.words.imports, SAMPLER))


def drawing_loaders(script: Script) -> list[ast.Call]:
    """The calls of a file that make loaders of training with samplers of which each rank takes a part."""
    status = program_of(script).followed.status
    calls = {each.call for each, kind in status.items() if kind == "training" and each.call in script.parents}
    return [call for call in calls if drawing_sampler(script, call) is not None]


def wrapped_sampler(script: Script, call: ast.Call, alone: bool, words: Words) -> Iterator[Edit | Finding]:
    """Wrap the sampler of a loader of training; alone: whether its call makes no other loader."""
    sampler = drawing_sampler(script, call)
    assert sampler is not None
    changed = changed_in_place(program_of(script).scripts, script, sampler)
    if words.name != "torch" or not alone:
        message = "this loader draws by weights, or samples more than once, which each rank would do otherwise"
        yield Finding(RULE.id, "refused", call.lineno, message, REMEDY)
    elif draws_without_end(script, sampler):
        message = "this sampler draws without end, and what it draws is sent in one list to the other ranks"
        yield Finding(RULE.id, "refused", call.lineno, message, REMEDY)
    elif changed is not None:
        message = f"what this sampler draws by may be changed while it is used (line {getattr(changed, 'lineno', 0)})"
        yield Finding(RULE.id, "refused", call.lineno, message, REMEDY)
    else:
        yield Replace(sampler, f"{NAME}({{}})", "draw this rank's samples", modules=words.imports)


RULE = Rule(
    id="DDP640",
    title="Take a part of what a sampler draws",
    why="""\
WeightedRandomSampler and RandomSampler with `num_samples` draw some samples more than once, which no data set says.
What rank 0 draws is sent to the others, and each takes every W-th of it: together they have the batches of rank 0's
sampler (D1). A few come twice where the ranks do not divide their number (D6).""",
    before="""\
import torch
from torch.utils.data import DataLoader, TensorDataset, WeightedRandomSampler

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
    after='''\
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
    check=check,
    target="cpu",
)
