"""DDP660: with several ranks, an exception of a training ends the run, where the script goes on and trains again."""

from __future__ import annotations

from collections.abc import Iterator

from ...facts.script import Script
from ...rule import Edit, Finding, Insert, Rule
from ...targets import Target
from .words import is_here, program_of


def check(script: Script, target: Target) -> Iterator[Edit | Finding]:
    """Raise it again at the beginning of what takes it."""
    words = target.words
    code = f"if {words.world_size} > 1:\n    raise  # the other ranks wait for this one in their backward pass"
    for handler, there in program_of(script).followed.found.ended.items():
        if is_here(script, there):
            yield Insert(handler.body[0], code, "let the exception end the run", modules=words.imports)
            message = (
                "with several ranks this exception ends the run, in place of what the script does here; with one rank "
                "it does where it comes out of a backward pass"
            )
            remedy = "begin such a run again with what it does not come with, as smaller batches, or run it on one rank"
            yield Finding(RULE.id, "warning", handler.lineno, message, remedy)


RULE = Rule(
    id="DDP660",
    title="Let an exception end the run",
    why="""\
A script that goes on after an exception of its training, with less memory, the next batch or the next model, does so
on one rank alone: the others wait for it in their backward pass, for ever (E4). With several ranks the exception ends
the run, as an expert would have it. So do those of memory that is not enough, and any error (`Exception`,
`RuntimeError`) around a whole training, of a program that raises none in it itself; one that the script means to come,
`StopIteration` or its own, errors of single batches and of files that are read, and what saves the state or tries until
it goes well are refused (DDP610). With one rank the script goes on, unless the exception comes out of the backward pass
itself: DistributedDataParallel, which it has left half done, then ends the run.""",
    before="""\
import torch
from torch.utils.data import DataLoader, TensorDataset

loader = DataLoader(TensorDataset(torch.rand(64, 4), torch.rand(64, 1)), batch_size=8, shuffle=True)
model = torch.nn.Linear(4, 1)
optimizer = torch.optim.SGD(model.parameters(), lr=0.1)
for x, y in loader:
    try:
        loss = torch.nn.functional.mse_loss(model(x), y)
        optimizer.zero_grad()
        loss.backward()
        optimizer.step()
    except torch.cuda.OutOfMemoryError:
        torch.cuda.empty_cache()
""",
    after="""\
import os
import sys

import torch
import torch.distributed as dist
from torch.nn.parallel import DistributedDataParallel
from torch.utils.data import DataLoader, TensorDataset
from torch.utils.data.distributed import DistributedSampler

dist.init_process_group("gloo")
if dist.get_rank() != 0:
    sys.stdout = open(os.devnull, "w")  # rank 0 prints
torch.manual_seed(0)

loader = DataLoader(
    dataset := TensorDataset(torch.rand(64, 4), torch.rand(64, 1)),
    batch_size=8 // dist.get_world_size(),
    sampler=DistributedSampler(dataset, shuffle=True),
)
model = torch.nn.Linear(4, 1)
ddp_model = DistributedDataParallel(model)
optimizer = torch.optim.SGD(model.parameters(), lr=0.1)
for x, y in loader:
    try:
        loss = torch.nn.functional.mse_loss(ddp_model(x), y)
        optimizer.zero_grad()
        loss.backward()
        optimizer.step()
    except torch.cuda.OutOfMemoryError:
        if dist.get_world_size() > 1:
            raise  # the other ranks wait for this one in their backward pass
        torch.cuda.empty_cache()

dist.destroy_process_group()
""",
    check=check,
    target="cpu",
)
