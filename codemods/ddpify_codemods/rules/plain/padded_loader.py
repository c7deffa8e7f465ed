"""DDP638: batches that are padded to the longest sample are as long on all ranks."""

from __future__ import annotations

import ast
from collections.abc import Iterator

from ...facts.header import functions_place
from ...facts.script import Script
from ...rule import ChangeArgument, Edit, Finding, Insert, Replace, Rule
from ...targets import Target
from .words import REMEDY, device, program_of

NAME = "EquallyPaddedLoader"
_MESSAGE = "pad to the longest sample of all ranks"
_PARTS = '''\


class {name}(torch.utils.data.DataLoader):
    """Batches that are padded to the longest sample of all processes.

    padded: what is padded of a batch, along which dimension, and with what.
    """

    def __init__(self, *args, padded, **options):
        super().__init__(*args, **options)
        self.padded = padded

    def __iter__(self):
        for batch in super().__iter__():
            batch = batch if isinstance(batch, dict) else list(batch)
            lengths = torch.tensor([batch[key].shape[dim] for key, dim, _ in self.padded]{device})
            dist.all_reduce(lengths, dist.ReduceOp.MAX)
            for (key, dim, value), length in zip(self.padded, lengths.tolist()):
                behind = [0, 0] * (batch[key].dim() - dim - 1) + [0, length - batch[key].shape[dim]]
                batch[key] = torch.nn.functional.pad(batch[key], behind, value=value)
            yield batch
'''
_BEHIND = "(batch[key].dim() - dim - 1)"
_FROM_BEHIND = "(batch[key].dim() - dim % batch[key].dim() - 1)"
_WHOLE = '''\


class {name}(torch.utils.data.DataLoader):
    """Batches that are padded to the longest sample of all processes: along which dimension, and with what."""

    def __init__(self, *args, padded, **options):
        super().__init__(*args, **options)
        self.padded = padded

    def __iter__(self):
        dim, value = self.padded
        for batch in super().__iter__():
            length = torch.tensor(batch.shape[dim]{device})
            dist.all_reduce(length, dist.ReduceOp.MAX)
            behind = [0, 0] * (batch.dim() - dim - 1) + [0, length.item() - batch.shape[dim]]
            yield torch.nn.functional.pad(batch, behind, value=value)
'''


def check(script: Script, target: Target) -> Iterator[Edit | Finding]:
    """Let loaders of training whose collate functions pad bring their batches to one length."""
    padded, words = padded_loaders(script), target.words
    if not padded:
        return
    first = min(padded, key=lambda each: each.lineno)
    if words.name != "torch" or len({None in each for each in padded.values()}) > 1 or _is_taken(script):
        message = "batches are padded to the longest sample here, another one on each rank"
        yield Finding(RULE.id, "refused", first.lineno, message, REMEDY)
        return
    for call, parts in sorted(padded.items(), key=lambda each: each[0].lineno):
        each = [(key, dim, value) for key, (dims, value) in parts.items() for dim in dims]
        given = [f"({key!r}, {dim}, {value})".replace("'", '"') for key, dim, value in each]
        code = f"[{', '.join(given)}]" if None not in parts else "({}, {})".format(*each[0][1:])
        yield Replace(call.func, NAME, _MESSAGE)
        yield ChangeArgument(call, "padded", code, _MESSAGE)
    text = _WHOLE if any(None in each for each in padded.values()) else _PARTS
    if any(dim < 0 for parts in padded.values() for dims, _ in parts.values() for dim in dims):
        text = text.replace(_BEHIND, _FROM_BEHIND)
    at, where = functions_place(script)
    where_reduced = "" if target.reduces_on_host else device(target)
    code = text.format(name=NAME, device=where_reduced).rstrip("\n")
    message = "a loader whose batches are as long on all ranks"
    yield Insert(at, code, message, where, modules=(*words.imports, "import torch"))


def padded_loaders(script: Script) -> dict[ast.Call, dict[str | int | None, tuple[tuple[int, ...], str]]]:
    """The calls of a file that make loaders of training whose batches are padded, and what is padded of these."""
    followed = program_of(script).followed
    calls = {each.call for each, status in followed.status.items() if status == "training" and each.source is None}
    padded = {call: parts for call, parts in followed.found.padded.items() if parts and call in script.parents}
    return {call: parts for call, parts in padded.items() if call in calls}


def _is_taken(script: Script) -> bool:
    return any(getattr(node, "name", "") == NAME for node in script.tree.body)


RULE = Rule(
    id="DDP638",
    title="Pad to the longest sample of all ranks",
    why="""\
A collate function that pads makes batches as long as their longest sample. That of a rank's samples is another one on
each: a mean over tokens would weigh the ranks otherwise (L3), and a model that does not mask what is padded would
see another batch. The ranks agree on the longest of all, one number for each batch, and pad to it with what the
collate function pads with. On GPUs that number goes over gloo, from host to host: over NCCL each batch would wait for
the step before it.""",
    before="""\
import torch
from torch.nn.utils.rnn import pad_sequence
from torch.utils.data import DataLoader


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
    after='''\
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
    check=check,
    target="cpu",
)
