"""DDP657: a run of wandb that the script asks for something is begun on every rank, disabled on all but rank 0."""

from __future__ import annotations

import ast
from collections.abc import Iterator
from dataclasses import replace
from functools import lru_cache

from ...facts.loggers import begins_run, loggers
from ...facts.on_rank_zero import kept_on_rank_zero
from ...facts.script import KEPT, Script
from ...rule import ChangeArgument, Edit, Finding, Replace, Rule
from ...targets import Target
from .logged import guarded
from .rank_0_alone import is_called_by_rank_0, is_of_rank_0
from .words import REMEDY, program_of

# These are alike on all ranks, or for rank 0: https://docs.wandb.ai/ref/python/sdk/classes/run
_ALIKE = frozenset({"config", "summary"})


def check(script: Script, target: Target) -> Iterator[Edit | Finding]:
    """Begin it on every rank, in the mode that sends nothing."""
    words = target.words
    chosen = f'{{}} if {words.is_rank_0} else "disabled"'
    for call in script.find(ast.Call):
        if call not in disabled_runs(script):
            continue
        mode = next((word.value for word in call.keywords if word.arg == "mode"), None)
        message = "begin the run on every rank, and record it on rank 0"
        if any(word.arg is None for word in call.keywords) or is_called_by_rank_0(script, call):
            message = "the other ranks are asked for what wandb keeps, and have no run"
            yield Finding(RULE.id, "refused", call.lineno, message, REMEDY)
        elif mode is None:
            yield ChangeArgument(call, "mode", chosen.format("None"), message, modules=words.imports)
        elif not (isinstance(mode, ast.Constant) and mode.value == "disabled"):
            yield Replace(mode, chosen, message, modules=words.imports)


@lru_cache(maxsize=KEPT)
def disabled_runs(script: Script) -> frozenset[ast.Call]:
    """The calls of a program that begin a run which other ranks than rank 0 need as well."""
    program = program_of(script)
    calls = frozenset(call for each in program.scripts for call in each.find(ast.Call) if begins_run(each, call))
    scripts = (replace(each, program=program) for each in program.scripts)
    return calls if calls and any(map(_is_asked, scripts)) else frozenset()


def everywhere(script: Script) -> Iterator[ast.Call]:
    """The calls of a file that begin and end such a run, which every rank makes."""
    runs = disabled_runs(script)
    for call in script.find(ast.Call) if runs else ():
        if call in runs or script.qualified(call.func) in ("wandb.finish", "wandb.join"):
            yield call


def is_alike(node: ast.expr) -> bool:
    """Whether what a run is asked for is the same on all ranks, or for rank 0: its settings, its summary."""
    asked = node.func if isinstance(node, ast.Call) else node
    while isinstance(asked, ast.Attribute):
        if asked.attr in _ALIKE:
            return True
        asked = asked.value
    return False


def _is_asked(script: Script) -> bool:
    """Whether all ranks come to something that wandb keeps, or use a run as an object."""
    if any(not is_of_rank_0(script, each) for each in kept_on_rank_zero(script)):
        return True
    alone = {call for name in guarded(script) for call in loggers(script)[name]}
    begun = (call for call in script.find(ast.Call) if begins_run(script, call))
    return any(call not in alone and not isinstance(script.parents[call], ast.Expr) for call in begun)


RULE = Rule(
    id="DDP657",
    title="Begin runs of wandb everywhere",
    why="""\
A run exists once (I5), but the script asks it for something, `wandb.config.lr`, or whether there is one, `if
wandb.run:`. The other ranks begin a disabled run: it has the same settings, takes what it is given, and sends and
writes nothing. Its name is rank 0's, where a rank reads it.""",
    before="""\
import torch
import wandb
from torch.utils.data import DataLoader, TensorDataset

wandb.init(project="line", config={"lr": 0.1})
dataset = TensorDataset(torch.rand(64, 4), torch.rand(64, 1))
loader = DataLoader(dataset, batch_size=8, shuffle=True)
model = torch.nn.Linear(4, 1)
optimizer = torch.optim.SGD(model.parameters(), lr=wandb.config.lr)
for x, y in loader:
    loss = torch.nn.functional.mse_loss(model(x), y)
    optimizer.zero_grad()
    loss.backward()
    optimizer.step()
    if wandb.run is not None:
        wandb.log({"loss": loss.item()})
""",
    after='''\
import os
import sys

import torch
import torch.distributed as dist
import wandb
from torch.nn.parallel import DistributedDataParallel
from torch.utils.data import DataLoader, TensorDataset
from torch.utils.data.distributed import DistributedSampler


def mean_over_ranks(value):
    """The mean of a number, a list of numbers or a tensor over all processes."""
    total = torch.as_tensor(value).detach().contiguous().clone()
    dist.all_reduce(total)
    total = total / dist.get_world_size()
    return total.to(value.device) if torch.is_tensor(value) else total.tolist()


dist.init_process_group("gloo")
if dist.get_rank() != 0:
    sys.stdout = open(os.devnull, "w")  # rank 0 prints
torch.manual_seed(0)

wandb.init(project="line", config={"lr": 0.1}, mode=None if dist.get_rank() == 0 else "disabled")
dataset = TensorDataset(torch.rand(64, 4), torch.rand(64, 1))
loader = DataLoader(
    dataset,
    batch_size=8 // dist.get_world_size(),
    sampler=DistributedSampler(dataset, shuffle=True),
)
model = torch.nn.Linear(4, 1)
ddp_model = DistributedDataParallel(model)
optimizer = torch.optim.SGD(model.parameters(), lr=wandb.config.lr)
for x, y in loader:
    loss = torch.nn.functional.mse_loss(ddp_model(x), y)
    optimizer.zero_grad()
    loss.backward()
    optimizer.step()
    if wandb.run is not None:
        mean_loss = mean_over_ranks(loss.item())
        if dist.get_rank() == 0:
            wandb.log({"loss": mean_loss})

dist.destroy_process_group()
''',
    check=check,
    target="cpu",
)
