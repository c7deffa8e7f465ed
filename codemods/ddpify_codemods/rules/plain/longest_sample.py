"""DDP647: what a model makes as long as the longest sample is as long as that of all ranks."""

from __future__ import annotations

import ast
from collections.abc import Iterator

from ...facts.flow.joined import last_name
from ...facts.flow.longest import LARGEST
from ...facts.header import functions_place
from ...facts.script import Script
from ...rule import ChangeArgument, Edit, Finding, Insert, Replace, Rule
from ...targets import Target
from .words import REMEDY, device, is_here, program_of

NAME = "max_over_ranks"
_MESSAGE = "as long as the longest sample of all ranks"
_GUARD = """\
    if not torch.is_grad_enabled():  # an evaluation
        return value
"""
_HELPER = '''\


def {name}(value):
    """The largest of a number over all processes."""
{guard}    largest = torch.as_tensor(value{device}).detach().contiguous().clone()
    {all_reduce_max}
    return largest.to(value.device) if torch.is_tensor(value) else largest.item()
'''


def check(script: Script, target: Target) -> Iterator[Edit | Finding]:
    """Let the ranks agree on the longest sample where a model asks for it."""
    calls, words = asks(script), target.words
    if not calls:
        return
    if not words.all_reduce_max or any(getattr(node, "name", "") == NAME for node in script.tree.body):
        message = "what is made here is as long as the longest of a rank's samples, another one on each"
        yield Finding(RULE.id, "refused", calls[0].lineno, message, REMEDY)
        return
    for call in calls:
        if last_name(call) in LARGEST:
            yield Replace(call, f"{NAME}({{}})", _MESSAGE)
        else:
            code = f"{NAME}(len({ast.unparse(call.args[0])}.batch_sizes))"
            yield ChangeArgument(call, "total_length", code, _MESSAGE)
    evaluated = program_of(script).followed.found.agreed_quietly
    guard = _GUARD if any(call in evaluated for call in calls) else ""
    at, where = functions_place(script)
    all_reduce_max = words.all_reduce_max.format("largest")
    code = _HELPER.format(name=NAME, guard=guard, device=device(target), all_reduce_max=all_reduce_max).rstrip("\n")
    message = "a function that takes the largest over all ranks"
    yield Insert(at, code, message, where, modules=(*words.imports, "import torch"))


def asks(script: Script) -> list[ast.Call]:
    """The calls of a file by which a model asks how long the longest sample is."""
    lengths = program_of(script).followed.found.agreed
    here = (call for call, there in lengths.items() if is_here(script, there))
    return sorted(here, key=lambda each: (each.lineno, each.col_offset))


RULE = Rule(
    id="DDP647",
    title="Take the longest sample of all ranks",
    why="""\
What `pad_packed_sequence` gives is as long as the longest of a rank's samples, another one on each: a mean over its
steps, or a model that looks at those behind a sample's own, would be another one than that of the batch (L3). Packed
sequences tell their length; the ranks agree on the largest, one number in each forward, and pad to it. So they do
where a model takes `lengths.max()` steps, cuts its samples there, or makes a mask as long. An evaluation, of which each
rank has batches of its own, and not equally many, takes the longest of those.""",
    before="""\
import torch
from torch.nn.utils.rnn import pack_padded_sequence, pad_packed_sequence
from torch.utils.data import DataLoader, TensorDataset


class Tagger(torch.nn.Module):
    def __init__(self):
        super().__init__()
        self.rnn = torch.nn.GRU(4, 8, batch_first=True)
        self.head = torch.nn.Linear(8, 3)

    def forward(self, x, lengths):
        packed = pack_padded_sequence(x, lengths, batch_first=True, enforce_sorted=False)
        outputs, _ = self.rnn(packed)
        outputs, _ = pad_packed_sequence(outputs, batch_first=True)
        return self.head(outputs.mean(1))


dataset = TensorDataset(torch.rand(64, 9, 4), torch.randint(1, 10, (64,)), torch.randint(3, (64,)))
loader = DataLoader(dataset, batch_size=8, shuffle=True)
model = Tagger()
optimizer = torch.optim.SGD(model.parameters(), lr=0.1)
for x, lengths, y in loader:
    loss = torch.nn.functional.cross_entropy(model(x, lengths), y)
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
from torch.nn.utils.rnn import pack_padded_sequence, pad_packed_sequence
from torch.utils.data import DataLoader, TensorDataset
from torch.utils.data.distributed import DistributedSampler


def max_over_ranks(value):
    """The largest of a number over all processes."""
    largest = torch.as_tensor(value).detach().contiguous().clone()
    dist.all_reduce(largest, dist.ReduceOp.MAX)
    return largest.to(value.device) if torch.is_tensor(value) else largest.item()


dist.init_process_group("gloo")
if dist.get_rank() != 0:
    sys.stdout = open(os.devnull, "w")  # rank 0 prints
torch.manual_seed(0)


class Tagger(torch.nn.Module):
    def __init__(self):
        super().__init__()
        self.rnn = torch.nn.GRU(4, 8, batch_first=True)
        self.head = torch.nn.Linear(8, 3)

    def forward(self, x, lengths):
        packed = pack_padded_sequence(x, lengths, batch_first=True, enforce_sorted=False)
        outputs, _ = self.rnn(packed)
        outputs, _ = pad_packed_sequence(
            outputs,
            batch_first=True,
            total_length=max_over_ranks(len(outputs.batch_sizes)),
        )
        return self.head(outputs.mean(1))


dataset = TensorDataset(torch.rand(64, 9, 4), torch.randint(1, 10, (64,)), torch.randint(3, (64,)))
loader = DataLoader(
    dataset,
    batch_size=8 // dist.get_world_size(),
    sampler=DistributedSampler(dataset, shuffle=True),
)
model = Tagger()
ddp_model = DistributedDataParallel(model)
optimizer = torch.optim.SGD(model.parameters(), lr=0.1)
for x, lengths, y in loader:
    loss = torch.nn.functional.cross_entropy(ddp_model(x, lengths), y)
    optimizer.zero_grad()
    loss.backward()
    optimizer.step()

dist.destroy_process_group()
''',
    check=check,
    target="cpu",
)
