"""DDP614: names that are made of the time or of chance are those of rank 0."""

from __future__ import annotations

import ast
from collections.abc import Iterator

from ...facts.effects import effects
from ...facts.header import last_leading_import
from ...facts.script import Script
from ...rule import Edit, Finding, Insert, Replace, Rule
from ...targets import Target
from ..exact import unique_names
from .numbers import reduces
from .process_group import joined_after
from .words import REMEDY

_HELPER = '''\


def from_rank_0(value):
    """What rank 0 has, on all processes."""
    {}'''


def check(script: Script, target: Target) -> Iterator[Edit | Finding]:
    """Send rank 0's names to the others, where they are not for rank 0 alone."""
    words = target.words
    written = set(effects(script))
    sent = False
    for item in unique_names.check(script, target):
        if not isinstance(item, Replace):
            yield item
            continue
        call = script.parents[item.node]
        assert isinstance(call, ast.Call)
        if any(each in written for each in script.ancestors(call)):
            continue  # it is computed on rank 0, for what rank 0 writes
        if not _is_in_group(script, call):
            message = f"{ast.unparse(call.func)} gives each rank a name of its own, before the process group is joined"
            yield Finding(RULE.id, "refused", call.lineno, message, REMEDY)
            continue
        yield Replace(call, "from_rank_0({})", "take rank 0's name on every rank", modules=words.imports)
        sent = True
    anchor = last_leading_import(script.tree)
    if sent and anchor is not None:
        end = "" if reduces(script) or joined_after(script)[1] == "before" else "\n"
        code = _HELPER.format("\n    ".join(words.of_rank_0)) + end
        message = "a function that gives all ranks what rank 0 has"
        yield Insert(anchor, code, message, "after", modules=words.imports)


def _is_in_group(script: Script, call: ast.Call) -> bool:
    """Whether the process group has been joined when a call is made."""
    if any(isinstance(each, ast.FunctionDef | ast.Lambda) for each in script.ancestors(call)):
        return True
    at, where = joined_after(script)
    return script.is_entry and call.lineno >= at.lineno + (where == "after")


RULE = Rule(
    id="DDP614",
    title="Take rank 0's names",
    why="""\
A folder named after the time or a random number is another one in every process (I6). Rank 0 makes the name and sends
it to the others. What only rank 0 writes needs no such name elsewhere.""",
    before="""\
import time
import torch
from torch.utils.data import DataLoader, TensorDataset

run = time.strftime("%Y%m%d-%H%M%S")
dataset = TensorDataset(torch.rand(64, 4), torch.rand(64, 1))
loader = DataLoader(dataset, batch_size=8, shuffle=True)
model = torch.nn.Linear(4, 1)
optimizer = torch.optim.SGD(model.parameters(), lr=0.1)
for x, y in loader:
    loss = torch.nn.functional.mse_loss(model(x), y)
    optimizer.zero_grad()
    loss.backward()
    optimizer.step()
torch.save(model.state_dict(), f"model-{run}.pt")
""",
    after='''\
import time
import torch
from torch.utils.data import DataLoader, TensorDataset
import os
import sys
import torch.distributed as dist
from torch.nn.parallel import DistributedDataParallel
from torch.utils.data.distributed import DistributedSampler


def from_rank_0(value):
    """What rank 0 has, on all processes."""
    values = [value]
    dist.broadcast_object_list(values)
    return values[0]

dist.init_process_group("gloo")
if dist.get_rank() != 0:
    sys.stdout = open(os.devnull, "w")  # rank 0 prints
torch.manual_seed(0)

run = from_rank_0(time.strftime("%Y%m%d-%H%M%S"))
dataset = TensorDataset(torch.rand(64, 4), torch.rand(64, 1))
loader = DataLoader(
    dataset,
    batch_size=8 // dist.get_world_size(),
    sampler=DistributedSampler(dataset, shuffle=True),
)
model = torch.nn.Linear(4, 1)
ddp_model = DistributedDataParallel(model)
optimizer = torch.optim.SGD(model.parameters(), lr=0.1)
for x, y in loader:
    loss = torch.nn.functional.mse_loss(ddp_model(x), y)
    optimizer.zero_grad()
    loss.backward()
    optimizer.step()
if dist.get_rank() == 0:
    torch.save(model.state_dict(), f"model-{run}.pt")
dist.destroy_process_group()
''',
    check=check,
    target="cpu",
)
