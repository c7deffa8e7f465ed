"""DDP708: batches are padded to the longest of their own samples."""

from __future__ import annotations

import ast
from collections.abc import Iterator

from ...facts.plain_code import padded_loaders
from ...facts.script import Script
from ...rule import ChangeArgument, Delete, Edit, Finding, Replace, Rule
from ...targets import Target

_MESSAGE = "the batches of one process are as long as their longest sample"


def check(script: Script, target: Target) -> Iterator[Edit | Finding]:
    """Let loaders be torch's again that bring their batches to one length."""
    own = padded_loaders(script)
    for node in script.find(ast.ClassDef):
        if node.name in own:
            yield Delete(node, "leave out what pads to the longest of all processes")
    loader = next((name for name, full in script.imported.items() if full == "torch.utils.data.DataLoader"), "")
    for name in script.find(ast.Name):
        call = script.parents[name]
        if name.id not in own:
            continue
        if not isinstance(call, ast.Call) or call.func is not name or "padded" not in {w.arg for w in call.keywords}:
            message = f"{name.id} is used in a way of its own here"
            yield Finding(RULE.id, "refused", name.lineno, message, "make a loader by it, and say what is padded")
            continue
        yield Replace(name, loader or "torch.utils.data.DataLoader", _MESSAGE)
        yield ChangeArgument(call, "", "", "", "padded")


RULE = Rule(
    id="DDP708",
    title="Pad batches to their own longest sample",
    why="""\
The inverse of DDP638: in one process, the longest sample of a batch is that of all ranks. The class is known by what it
does.""",
    before='''\
import os
import sys

import torch
import torch.distributed as dist
from torch.nn.parallel import DistributedDataParallel
from torch.nn.utils.rnn import pad_sequence
from torch.utils.data import DataLoader
from torch.utils.data.distributed import DistributedSampler


class EquallyPaddedLoader(torch.utils.data.DataLoader):
    """Batches that are padded to the longest sample of all processes.

    padded: what is padded of a batch, along which dimension, and with what.
    """

    def __init__(self, *args, padded, **options):
        super().__init__(*args, **options)
        self.padded = padded

    def __iter__(self):
        for batch in super().__iter__():
            batch = batch if isinstance(batch, dict) else list(batch)
            lengths = torch.tensor([batch[key].shape[dim] for key, dim, _ in self.padded])
            dist.all_reduce(lengths, dist.ReduceOp.MAX)
            for (key, dim, value), length in zip(self.padded, lengths.tolist()):
                behind = [0, 0] * (batch[key].dim() - dim - 1) + [0, length - batch[key].shape[dim]]
                batch[key] = torch.nn.functional.pad(batch[key], behind, value=value)
            yield batch


dist.init_process_group("gloo")
if dist.get_rank() != 0:
    sys.stdout = open(os.devnull, "w")  # rank 0 prints
torch.manual_seed(0)


def collate(samples):
    tokens, labels = zip(*samples)
    return pad_sequence(tokens, batch_first=True, padding_value=1), torch.tensor(labels)


train_set = [(torch.randint(2, 50, (n % 7 + 2,)), n % 2) for n in range(64)]
train_loader = EquallyPaddedLoader(
    train_set,
    batch_size=8 // dist.get_world_size(),
    sampler=DistributedSampler(train_set, shuffle=True),
    collate_fn=collate,
    padded=[(0, 1, 1)],
)
model = torch.nn.EmbeddingBag(50, 2)
ddp_model = DistributedDataParallel(model)
optimizer = torch.optim.SGD(model.parameters(), lr=0.1)
for tokens, labels in train_loader:
    loss = torch.nn.functional.cross_entropy(ddp_model(tokens), labels)
    optimizer.zero_grad()
    loss.backward()
    optimizer.step()

dist.destroy_process_group()
''',
    after="""\
import torch
from torch.nn.utils.rnn import pad_sequence
from torch.utils.data import DataLoader


torch.manual_seed(0)


def collate(samples):
    tokens, labels = zip(*samples)
    return pad_sequence(tokens, batch_first=True, padding_value=1), torch.tensor(labels)


train_set = [(torch.randint(2, 50, (n % 7 + 2,)), n % 2) for n in range(64)]
train_loader = DataLoader(train_set, batch_size=8, shuffle=True, collate_fn=collate)
model = torch.nn.EmbeddingBag(50, 2)
optimizer = torch.optim.SGD(model.parameters(), lr=0.1)
for tokens, labels in train_loader:
    loss = torch.nn.functional.cross_entropy(model(tokens), labels)
    optimizer.zero_grad()
    loss.backward()
    optimizer.step()
""",
    check=check,
    target="none",
)
