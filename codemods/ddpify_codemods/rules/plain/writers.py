"""DDP612: a logger of a library (SummaryWriter, wandb) lives on rank 0, and is given numbers of all ranks."""

from __future__ import annotations

import ast
from collections.abc import Iterator

from ...facts.effects import effects
from ...facts.on_rank_zero import made_on_rank_zero
from ...facts.script import Script
from ...rule import Edit, Finding, Guard, Replace, Rule
from ...targets import Target
from .words import REMEDY, is_quiet


def made(script: Script) -> dict[str, ast.Call]:
    """The loggers of a file that have a name, and the calls that make them."""
    found: dict[str, ast.Call] = {}
    for call in effects(script):
        last = script.qualified(call.func).rpartition(".")[2]
        parent = script.parents[call]
        named = isinstance(parent, ast.Assign) and len(parent.targets) == 1 and parent.value is call
        if named and (last.endswith(("SummaryWriter", "Visdom")) or made_on_rank_zero(script, call)):
            assert isinstance(parent, ast.Assign)
            if isinstance(parent.targets[0], ast.Name | ast.Attribute):
                found[ast.unparse(parent.targets[0])] = call
    return found


def is_logged(script: Script, statement: ast.stmt) -> bool:
    """Whether a statement only calls a logger, or a function that writes."""
    if not isinstance(statement, ast.Expr) or not isinstance(statement.value, ast.Call):
        return False
    func = statement.value.func
    is_method = isinstance(func, ast.Attribute) and ast.unparse(func.value) in made(script)
    return is_method or any(call is statement.value for call in effects(script))


def check(script: Script, target: Target) -> Iterator[Edit | Finding]:
    """Make loggers on rank 0, and call them there."""
    loggers, words = made(script), target.words
    for name, call in loggers.items():
        yield Replace(call, f"{{}} if {words.is_rank_0} else None", f"make {name} on rank 0", modules=words.imports)
    for node in script.nodes:
        if not isinstance(node, ast.Name | ast.Attribute) or not isinstance(node.ctx, ast.Load):
            continue
        if ast.unparse(node) not in loggers:
            continue
        attribute = script.parents[node]
        used = script.parents[attribute] if isinstance(attribute, ast.Attribute) else attribute
        statement = script.statement(node)
        alone = isinstance(statement, ast.Expr) and statement.value is used
        if alone and isinstance(used, ast.Call) and used.func is attribute and is_quiet(script, used):
            message = f"call {ast.unparse(used.func)} on rank 0"
            yield Guard(statement, words.is_rank_0, message, modules=words.imports)
            continue
        message = f"{ast.unparse(node)} exists on rank 0 only, and is used here in a way that all ranks have to follow"
        yield Finding(RULE.id, "refused", node.lineno, message, REMEDY)


RULE = Rule(
    id="DDP612",
    title="Log on rank 0",
    why="""\
A SummaryWriter or a run of wandb exists once (I5). Rank 0 makes it and calls it; what it is given is brought together
from all ranks before, since the others do not come there (I11).""",
    before="""\
import torch
from torch.utils.data import DataLoader, TensorDataset
from torch.utils.tensorboard import SummaryWriter

writer = SummaryWriter("runs")
dataset = TensorDataset(torch.rand(64, 4), torch.rand(64, 1))
loader = DataLoader(dataset, batch_size=8, shuffle=True)
model = torch.nn.Linear(4, 1)
optimizer = torch.optim.SGD(model.parameters(), lr=0.1)
for step, (x, y) in enumerate(loader):
    loss = torch.nn.functional.mse_loss(model(x), y)
    optimizer.zero_grad()
    loss.backward()
    optimizer.step()
    writer.add_scalar("loss", loss.item(), step)
writer.close()
""",
    after='''\
import os
import sys
import torch
import torch.distributed as dist
from torch.nn.parallel import DistributedDataParallel
from torch.utils.data import DataLoader, TensorDataset
from torch.utils.data.distributed import DistributedSampler
from torch.utils.tensorboard import SummaryWriter


def mean_over_ranks(value):
    """The mean of a number, a list of numbers or a tensor over all processes."""
    total = torch.as_tensor(value).detach().clone()
    dist.all_reduce(total)
    total = total / dist.get_world_size()
    return total.to(value.device) if torch.is_tensor(value) else total.tolist()


dist.init_process_group("gloo")
if dist.get_rank() != 0:
    sys.stdout = open(os.devnull, "w")  # rank 0 prints
torch.manual_seed(0)

writer = SummaryWriter("runs") if dist.get_rank() == 0 else None
dataset = TensorDataset(torch.rand(64, 4), torch.rand(64, 1))
loader = DataLoader(
    dataset,
    batch_size=8 // dist.get_world_size(),
    sampler=DistributedSampler(dataset, shuffle=True),
)
model = torch.nn.Linear(4, 1)
ddp_model = DistributedDataParallel(model)
optimizer = torch.optim.SGD(model.parameters(), lr=0.1)
for step, (x, y) in enumerate(loader):
    loss = torch.nn.functional.mse_loss(ddp_model(x), y)
    optimizer.zero_grad()
    loss.backward()
    optimizer.step()
    mean_loss = mean_over_ranks(loss.item())
    if dist.get_rank() == 0:
        writer.add_scalar("loss", mean_loss, step)
if dist.get_rank() == 0:
    writer.close()
dist.destroy_process_group()
''',
    check=check,
    target="cpu",
)
