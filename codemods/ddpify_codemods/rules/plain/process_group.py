"""DDP601: the script joins torch's process group, takes its device, prints on rank 0 and leaves the group."""

from __future__ import annotations

import ast
from collections.abc import Iterator
from typing import Literal

from ...facts.header import joined_after, main_guard
from ...facts.script import Script
from ...rule import Edit, Finding, Insert, Rule
from ...targets import Target
from ..exact.entry import never_returns
from .longest_sample import asks
from .numbers import reduces
from .padded_loader import padded_loaders
from .parallel import own_flags, rank_0_prints, starts
from .sampler_wrapper import drawing_loaders
from .words import program_of


def check(script: Script, target: Target) -> Iterator[Edit | Finding]:
    """Insert init_process_group and destroy_process_group in the script that gets started."""
    if not script.is_entry or starts(script, target.words):
        return
    at, where = joined_after(script)
    relative = [node for node in script.find(ast.ImportFrom) if node.level]
    if target.starts_itself and relative:
        remedy = "start it by torchrun -m, without --entry spawn"
        yield Finding(RULE.id, "refused", relative[0].lineno, "it is started as a module of its package", remedy)
    yield _joined(script, at, target, where)
    guard = main_guard(script.tree)
    last = script.tree.body[-1]
    last = guard.body[-1] if guard is not None and (guard is last or at is guard.body[0]) else last
    if not never_returns(script, last):
        blank = "\n" if last is script.tree.body[-1] and hasattr(last, "body") else ""
        yield Insert(last, f"{blank}{target.words.leave}", "leave the process group", "after", last=True)


def _started(target: Target) -> Iterator[str]:
    """What starts torchrun for the script's own command line, unless a launcher has started it."""
    processes = f"str({target.processes})" if target.module else 'os.environ.get("NPROC", "2")'
    yield 'if "RANK" not in os.environ:  # torchrun has not started it: it does now'
    yield "    from torch.distributed.run import main as torchrun"
    yield ""
    yield f'    torchrun(["--standalone", "--nproc-per-node", {processes}, "--", *sys.argv])'
    yield "    sys.exit()"


def _joined(script: Script, at: ast.stmt, target: Target, where: Literal["before", "after"]) -> Insert:
    words = target.words
    lines = [*_started(target)] if target.starts_itself else []
    lines += [line for line in target.plain_environment if target.module or '"LOCAL_RANK"' not in line]
    modules = [*target.modules, *(("import os", "import sys") if target.starts_itself else ())]
    backend = target.plain_backend or f'"{target.backend}"'
    early = at is program_of(script).joined_above
    joined = [words.join.format(backend) + "  # before the imports that need it" * early]
    lines = ["", *lines] if early else lines
    if words.prepare:
        joined = own_flags(script, words, (*words.prepare, *joined))
        modules += ["import argparse", "import torch"]
    elif words.pin:
        joined += words.pin
        modules.append("import torch")
    elif target.module:
        lines.append(f'{target.module}.set_device(int(os.environ["LOCAL_RANK"]))')
        modules.append("import torch")
    quiet, needed = rank_0_prints(script, words)
    code = "\n".join([*lines, *joined, *quiet])
    message = "join the process group before anything else; rank 0 prints"
    if where == "after":
        functions = reduces(script) or padded_loaders(script) or drawing_loaders(script) or asks(script)
        code = "\n" * (1 + bool(functions)) + code
    return Insert(at, code, message, where, modules=(*needed, *modules), last=where == "after")


RULE = Rule(
    id="DDP601",
    title="Join and leave torch's process group",
    why="""\
Every process finds the others, takes its own device, and leaves at the end (P4). Prints stay where they are: on the
other ranks, standard output is the null device, so that what a print computes is computed by all (I1, I11). A file that
asks for the rank while it is imported (it writes, makes a loader or a logger), or that prints or draws random numbers
then, is imported below.""",
    before="""\
import torch
from torch.utils.data import DataLoader, TensorDataset

dataset = TensorDataset(torch.rand(64, 4), torch.rand(64, 1))
loader = DataLoader(dataset, batch_size=8, shuffle=True)
model = torch.nn.Linear(4, 1).cuda()
optimizer = torch.optim.SGD(model.parameters(), lr=0.1)
for x, y in loader:
    loss = torch.nn.functional.mse_loss(model(x.cuda()), y.cuda())
    optimizer.zero_grad()
    loss.backward()
    optimizer.step()
print("done")
""",
    after="""\
import os
import sys

import torch
import torch.distributed as dist
from torch.nn.parallel import DistributedDataParallel
from torch.utils.data import DataLoader, TensorDataset
from torch.utils.data.distributed import DistributedSampler

torch.cuda.set_device(int(os.environ["LOCAL_RANK"]))
dist.init_process_group("nccl")
if dist.get_rank() != 0:
    sys.stdout = open(os.devnull, "w")  # rank 0 prints
torch.manual_seed(0)

dataset = TensorDataset(torch.rand(64, 4), torch.rand(64, 1))
loader = DataLoader(
    dataset,
    batch_size=8 // dist.get_world_size(),
    sampler=DistributedSampler(dataset, shuffle=True),
)
model = torch.nn.Linear(4, 1).cuda()
ddp_model = DistributedDataParallel(model)
optimizer = torch.optim.SGD(model.parameters(), lr=0.1)
for x, y in loader:
    loss = torch.nn.functional.mse_loss(ddp_model(x.cuda()), y.cuda())
    optimizer.zero_grad()
    loss.backward()
    optimizer.step()
print("done")
dist.destroy_process_group()
""",
    check=check,
)
