"""DDP510: gradient accumulation whose last window stays local, or whose no_sync() does nothing (L7)."""

from __future__ import annotations

import ast
from collections.abc import Iterator

from ...facts.bindings import bindings, names_in
from ...facts.hand_written import is_method, wrap_calls
from ...facts.script import Script
from ...rule import Edit, Finding, Rule
from ...targets import Target


def check(script: Script, target: Target) -> Iterator[Edit | Finding]:
    """Report uses of no_sync() that step on local gradients, or save no communication."""
    if not wrap_calls(script):
        return
    for block in script.find(ast.With):
        given = [item.context_expr for item in block.items if "no_sync()" in ast.unparse(item.context_expr)]
        if not given:
            continue
        if _is_only_backward(block):
            message = "no_sync() has no effect here: whether gradients are averaged is decided in the forward"
            yield Finding(RULE.id, "warning", block.lineno, message, "put the forward into the `with` block too")
        elif _steps_at_the_end(script, block) and not _knows_the_end(script, given[0]):
            message = "the last window of an epoch may step on gradients of this rank alone"
            remedy = "leave no_sync() for the last batch of the epoch too: `or i + 1 == len(loader)`"
            yield Finding(RULE.id, "warning", block.lineno, message, remedy)


def _is_only_backward(block: ast.With) -> bool:
    [first, *rest] = block.body
    is_backward = (
        isinstance(first, ast.Expr) and isinstance(first.value, ast.Call) and is_method(first.value, "backward")
    )
    calls = [part for part in ast.walk(first) if isinstance(part, ast.Call)]
    return not rest and is_backward and len(calls) == 1


def _steps_at_the_end(script: Script, block: ast.With) -> bool:
    """Whether the loop around it also steps at its last batch: `if (i + 1) % k == 0 or i + 1 == len(loader):`."""
    loop = next((parent for parent in script.ancestors(block) if isinstance(parent, ast.For)), None)
    branches = [part for part in ast.walk(loop) if isinstance(part, ast.If)] if loop else []
    return any(
        "len(" in ast.unparse(branch.test) and "%" in ast.unparse(branch.test) and ".step(" in ast.unparse(branch)
        for branch in branches
    )


def _knows_the_end(script: Script, given: ast.expr) -> bool:
    """Whether the condition for no_sync(), or around it, looks at the length of the loader."""
    around = [parent.test for parent in script.ancestors(given) if isinstance(parent, ast.If)]
    known = bindings(script, script.scope(given))
    values = [value for node in (given, *around) for name in names_in(node) for value in known.get(name, ())]
    return any("len(" in ast.unparse(node) for node in (given, *around, *values))


RULE = Rule(
    id="DDP510",
    title="The last pass before a step is averaged",
    why="""\
Between the steps of gradient accumulation, `no_sync()` saves the averaging. The pass before each step must not be
inside, also that of the last window, which may be shorter: else every rank steps on its own gradients (L7). The
decision is taken in the forward, so `no_sync()` around `.backward()` alone does nothing.""",
    before="""\
from contextlib import nullcontext

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
accumulate = 3
for i, (x, y) in enumerate(loader):
    last = (i + 1) % accumulate == 0
    with nullcontext() if last else model.no_sync():
        nn.functional.mse_loss(model(x), y).backward()
    if (i + 1) % accumulate == 0 or i + 1 == len(loader):
        optimizer.step()
        optimizer.zero_grad()
""",
    after="""\
from contextlib import nullcontext

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
accumulate = 3
for i, (x, y) in enumerate(loader):
    last = (i + 1) % accumulate == 0 or i + 1 == len(loader)
    with nullcontext() if last else model.no_sync():
        nn.functional.mse_loss(model(x), y).backward()
    if (i + 1) % accumulate == 0 or i + 1 == len(loader):
        optimizer.step()
        optimizer.zero_grad()
""",
    check=check,
    target="cpu",
)
