"""DDP613: nn.DataParallel goes, and with it the `.module` that it made of the model."""

from __future__ import annotations

import ast
from collections.abc import Iterator

from ...facts.script import Script
from ...rule import Delete, Edit, Finding, Replace, Rule
from ...targets import Target

_CLASSES = frozenset({"torch.nn.DataParallel", "torch.nn.parallel.DataParallel"})


def check(script: Script, target: Target) -> Iterator[Edit | Finding]:
    """Take the model instead of what nn.DataParallel makes of it."""
    wrapped: set[str] = set()
    for call in script.find(ast.Call):
        if script.qualified(call.func) not in _CLASSES or not call.args:
            continue
        parent, message = script.parents[call], "leave the GPUs to DistributedDataParallel"
        if isinstance(parent, ast.Assign):
            wrapped.update(map(ast.unparse, parent.targets))
        if isinstance(parent, ast.Assign) and [*map(ast.unparse, parent.targets)] == [ast.unparse(call.args[0])]:
            yield Delete(parent, message)
        else:
            yield Replace(call, "{}", message, parts=(call.args[0],), bare=True)
    for node in script.find(ast.Attribute):
        if node.attr == "module" and isinstance(node.ctx, ast.Load) and ast.unparse(node.value) in wrapped:
            yield Replace(node, "{}", "the model is not wrapped here", parts=(node.value,), bare=True)
    for call in script.find(ast.Call):
        keyed = isinstance(call.func, ast.Attribute) and call.func.attr in ("state_dict", "load_state_dict")
        if keyed and _holds(ast.unparse(call.func.value), wrapped):  # type: ignore[attr-defined]
            message = "the keys of this state_dict begin with `module.` in the original, and do not here"
            remedy = "checkpoints of the original need their keys shortened"
            yield Finding(RULE.id, "warning", call.lineno, message, remedy)


def _holds(owner: str, wrapped: set[str]) -> bool:
    """Whether a model was wrapped, or a part of it: `model.encoder`."""
    return any(f"{each}.".startswith(f"{owner}.") for each in wrapped)


RULE = Rule(
    id="DDP613",
    title="Leave out nn.DataParallel",
    why="""\
With one process for each device DistributedDataParallel does what nn.DataParallel did (P4). The model keeps its name
and its own keys: those that nn.DataParallel had put `module.` before lose it (I7).""",
    before="""\
import torch
from torch.utils.data import DataLoader, TensorDataset

dataset = TensorDataset(torch.rand(64, 4), torch.rand(64, 1))
loader = DataLoader(dataset, batch_size=8, shuffle=True)
model = torch.nn.DataParallel(torch.nn.Linear(4, 1)).cuda()
optimizer = torch.optim.SGD(model.parameters(), lr=0.1)
for x, y in loader:
    loss = torch.nn.functional.mse_loss(model(x.cuda()), y.cuda())
    optimizer.zero_grad()
    loss.backward()
    optimizer.step()
torch.save(model.module.state_dict(), "model.pt")
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
ddp_model = DistributedDataParallel(model, device_ids=[torch.cuda.current_device()])
optimizer = torch.optim.SGD(model.parameters(), lr=0.1)
for x, y in loader:
    loss = torch.nn.functional.mse_loss(ddp_model(x.cuda()), y.cuda())
    optimizer.zero_grad()
    loss.backward()
    optimizer.step()
if dist.get_rank() == 0:
    torch.save(model.module.state_dict(), "model.pt")
dist.destroy_process_group()
""",
    check=check,
)
