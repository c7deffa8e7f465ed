"""DDP523: a batch that one rank skips because of its own loss (L20)."""

from __future__ import annotations

import ast
from collections.abc import Iterator

from ...facts.hand_written import backward_calls, is_collective, training_loops, wrap_calls
from ...facts.script import Script
from ...rule import Edit, Finding, Rule
from ...targets import Target

_TESTS = frozenset({"isnan", "isinf", "isfinite"})


def check(script: Script, target: Target) -> Iterator[Edit | Finding]:
    """Report `continue` before the backward pass on a nan of this rank."""
    if not wrap_calls(script):
        return
    for loop in training_loops(script):
        backward = backward_calls(script, loop)[0].lineno
        calls = [part for part in ast.walk(loop) if isinstance(part, ast.Call)]
        if any(is_collective(script, call) for call in calls) or any(
            "reduce" in ast.unparse(call.func) for call in calls
        ):
            continue
        for branch in (part for part in ast.walk(loop) if isinstance(part, ast.If) and part.lineno < backward):
            tests = {part.attr for part in ast.walk(branch.test) if isinstance(part, ast.Attribute)}
            skips = tests & _TESTS and any(isinstance(part, ast.Continue) for part in branch.body)
            if skips and not _asks_all(script, branch.test):
                message = "a rank that skips its backward pass leaves the others waiting in theirs: the run hangs"
                remedy = "decide together: dist.all_reduce a flag with ReduceOp.MAX, and skip on all ranks"
                yield Finding(RULE.id, "warning", branch.lineno, message, remedy)


def _asks_all(script: Script, test: ast.expr) -> bool:
    """Whether a test asks about what a function of the file has brought together from all ranks, itself."""
    called = {part.func.id for part in ast.walk(test) if isinstance(part, ast.Call) and isinstance(part.func, ast.Name)}
    functions = [each for each in script.find(ast.FunctionDef) if each.name in called]
    inside = (part for each in functions for part in ast.walk(each))
    return any(isinstance(part, ast.Call) and is_collective(script, part) for part in inside)


RULE = Rule(
    id="DDP523",
    title="All ranks skip, or none",
    why="""\
The backward pass of DistributedDataParallel waits for every rank. A rank whose loss is nan, and which goes on to the
next batch, averages gradients of another batch with the others, or leaves them waiting at the end (L20).""",
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
    if not torch.isfinite(loss):
        continue
    loss.backward()
    optimizer.step()
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
    bad = (~torch.isfinite(loss)).float()
    dist.all_reduce(bad)
    if bad:
        continue
    loss.backward()
    optimizer.step()
""",
    check=check,
    target="cpu",
)
