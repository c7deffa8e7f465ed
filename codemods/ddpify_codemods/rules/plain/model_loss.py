"""DDP637: the loss that a model of transformers computes weighs as much as what the rank has of labels that count."""

from __future__ import annotations

import ast
from collections.abc import Iterator

from ...facts.script import Script
from ...rule import Edit, Finding, Insert, Rule
from ...targets import Target
from .words import free_name, is_here, program_of

_MESSAGE = "labels of all ranks count together"


def check(script: Script, target: Target) -> Iterator[Edit | Finding]:
    """Weigh the loss behind the call of the model."""
    found = program_of(script).followed.found
    name = free_name(script, "labelled")
    for call, (there, count) in sorted(found.labelled.items(), key=lambda each: each[0].lineno):
        if not is_here(script, there):
            continue
        statement = script.statement(call)
        assert isinstance(statement, ast.Assign)
        named = statement.targets[0]
        loss = f"{ast.unparse(named)}.loss" if isinstance(named, ast.Name) else ast.unparse(named.elts[0])  # type: ignore[attr-defined]
        code = f"{name} = {count}\n{loss} = {loss} * {name} / mean_over_ranks({name})"
        yield Insert(statement, code, _MESSAGE, "after", modules=target.words.imports)


RULE = Rule(
    id="DDP637",
    title="Weigh the loss of a model by its labels",
    why="""\
Where a model of transformers is given labels, it computes the mean over those that are not -100, as over tokens. Each
rank divides by what its own samples have of them, which is another number on each: the average over ranks is then not
the mean of the batch (L3). Weighed by what a rank has, beside the mean over ranks, it is.""",
    before="""\
import torch
from torch.utils.data import DataLoader, TensorDataset
from transformers import BertConfig, BertForTokenClassification

dataset = TensorDataset(torch.randint(100, (64, 12)), torch.randint(-1, 3, (64, 12)))
loader = DataLoader(dataset, batch_size=8, shuffle=True)
model = BertForTokenClassification(BertConfig(num_labels=3))
optimizer = torch.optim.SGD(model.parameters(), lr=0.1)
for ids, tags in loader:
    labels = tags.masked_fill(tags < 0, -100)
    outputs = model(ids, labels=labels)
    optimizer.zero_grad()
    outputs.loss.backward()
    optimizer.step()
""",
    after='''\
import os
import sys

import torch
import torch.distributed as dist
from torch.nn.parallel import DistributedDataParallel
from torch.utils.data import DataLoader, TensorDataset
from torch.utils.data.distributed import DistributedSampler
from transformers import BertConfig, BertForTokenClassification


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

dataset = TensorDataset(torch.randint(100, (64, 12)), torch.randint(-1, 3, (64, 12)))
loader = DataLoader(
    dataset,
    batch_size=8 // dist.get_world_size(),
    sampler=DistributedSampler(dataset, shuffle=True),
)
model = BertForTokenClassification(BertConfig(num_labels=3))
ddp_model = DistributedDataParallel(model)
optimizer = torch.optim.SGD(model.parameters(), lr=0.1)
if dist.get_rank() != 0:  # noise of its own for its samples
    torch.manual_seed(torch.initial_seed() + dist.get_rank())
for ids, tags in loader:
    labels = tags.masked_fill(tags < 0, -100)
    outputs = ddp_model(ids, labels=labels)
    labelled = (labels != -100).sum()
    outputs.loss = outputs.loss * labelled / mean_over_ranks(labelled)
    optimizer.zero_grad()
    outputs.loss.backward()
    optimizer.step()

dist.destroy_process_group()
''',
    check=check,
    target="cpu",
)
