"""DDP516: a state_dict of the wrapper, whose keys begin with "module." (I7)."""

from __future__ import annotations

import ast
from collections.abc import Iterator

from ...facts.hand_written import called, wrapped_names
from ...facts.script import Script
from ...rule import Edit, Finding, Rule
from ...targets import Target


def check(script: Script, target: Target) -> Iterator[Edit | Finding]:
    """Report saved state_dicts of wrapped models, unless the script loads them into the wrapper again."""
    names = wrapped_names(script)
    if not names:
        return
    loaded = {_owner(call) for call in script.find(ast.Call) if called(call) == "load_state_dict"}
    for call in script.find(ast.Call):
        owner = _owner(call)
        if called(call) == "state_dict" and owner in names - loaded and _is_saved(script, call):
            message = f'the keys of {owner}.state_dict() begin with "module.": a plain model does not load them'
            yield Finding(RULE.id, "note", call.lineno, message, f"save {owner}.module.state_dict()")


def _owner(call: ast.Call) -> str:
    return ast.unparse(call.func.value) if isinstance(call.func, ast.Attribute) else ""


def _is_saved(script: Script, call: ast.Call) -> bool:
    around = (parent for parent in script.ancestors(call) if isinstance(parent, ast.Call))
    return any(script.qualified(parent.func) == "torch.save" for parent in around)


RULE = Rule(
    id="DDP516",
    title="Checkpoints are those of the model",
    why="""\
The wrapper's state_dict has "module." before every key. A script that evaluates, or trains on one device, then finds
no key that it knows; with `strict=False` it loads nothing and says nothing (I7).""",
    before="""\
import torch
import torch.distributed as dist
from torch import nn
from torch.nn.parallel import DistributedDataParallel as DDP
from torch.utils.data import DataLoader, DistributedSampler, TensorDataset

dist.init_process_group("gloo")
rank, world_size = dist.get_rank(), dist.get_world_size()
dataset = TensorDataset(torch.rand(64, 4), torch.rand(64, 1))
loader = DataLoader(dataset, batch_size=8, sampler=DistributedSampler(dataset))
model = DDP(nn.Linear(4, 1))
optimizer = torch.optim.SGD(model.parameters(), lr=0.1)
for x, y in loader:
    optimizer.zero_grad()
    loss = nn.functional.mse_loss(model(x), y)
    loss.backward()
    optimizer.step()
if rank == 0:
    torch.save(model.state_dict(), "model.pt")
""",
    after="""\
import torch
import torch.distributed as dist
from torch import nn
from torch.nn.parallel import DistributedDataParallel as DDP
from torch.utils.data import DataLoader, DistributedSampler, TensorDataset

dist.init_process_group("gloo")
rank, world_size = dist.get_rank(), dist.get_world_size()
dataset = TensorDataset(torch.rand(64, 4), torch.rand(64, 1))
loader = DataLoader(dataset, batch_size=8, sampler=DistributedSampler(dataset))
model = DDP(nn.Linear(4, 1))
optimizer = torch.optim.SGD(model.parameters(), lr=0.1)
for x, y in loader:
    optimizer.zero_grad()
    loss = nn.functional.mse_loss(model(x), y)
    loss.backward()
    optimizer.step()
if rank == 0:
    torch.save(model.module.state_dict(), "model.pt")
""",
    check=check,
    target="cpu",
)
