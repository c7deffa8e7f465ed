"""DDP514: a checkpoint that every rank writes to the same file (I2)."""

from __future__ import annotations

import ast
from collections.abc import Iterator

from ...facts.distributed import depends_on_rank, is_guarded
from ...facts.hand_written import wrap_calls
from ...facts.script import Script
from ...rule import Edit, Finding, Rule
from ...targets import Target


def check(script: Script, target: Target) -> Iterator[Edit | Finding]:
    """Report torch.save where no rank is chosen and the path has no rank in it."""
    if not wrap_calls(script):
        return
    for call in script.find(ast.Call):
        if script.qualified(call.func) != "torch.save" or is_guarded(script, call):
            continue
        in_memory = "BytesIO" in ast.unparse(script.scope(call))
        if not in_memory and not any(depends_on_rank(script, each) for each in (call, *_opened(script, call))):
            message = "every rank writes this file, at the same time"
            remedy = "save on rank 0: `if dist.get_rank() == 0:`, and dist.barrier() before it is read"
            yield Finding(RULE.id, "warning", call.lineno, message, remedy)


def _opened(script: Script, call: ast.Call) -> Iterator[ast.expr]:
    """What the files around a call are opened by, that it is given: `with open(path, "wb") as f:`."""
    names = {each.id for each in call.args if isinstance(each, ast.Name)}
    for parent in script.ancestors(call):
        for item in parent.items if isinstance(parent, ast.With) else ():
            if isinstance(item.optional_vars, ast.Name) and item.optional_vars.id in names:
                yield item.context_expr


RULE = Rule(
    id="DDP514",
    title="One rank saves",
    why="""\
All ranks hold the same weights and write them to the same path: on a shared file system a reader, or the next save,
may find a mixture (I2). One rank is enough.""",
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
torch.save(model.module.state_dict(), "model.pt")
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
