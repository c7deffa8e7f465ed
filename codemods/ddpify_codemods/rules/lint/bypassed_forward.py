"""DDP508: a loss that is computed past DistributedDataParallel's forward (M3)."""

from __future__ import annotations

import ast
from collections.abc import Iterator

from ...facts.hand_written import makes_loss, training_loops, wrap_calls
from ...facts.script import Script
from ...rule import Edit, Finding, Rule
from ...targets import Target

_HARMLESS = frozenset(
    {"parameters", "named_parameters", "state_dict", "buffers", "modules", "named_modules", "children"}
)


def check(script: Script, target: Target) -> Iterator[Edit | Finding]:
    """Report calls of `model.module` whose result reaches a backward pass."""
    if not wrap_calls(script):
        return
    found = {
        call.lineno: call
        for loop in training_loops(script)
        for value in makes_loss(script, loop)
        for call in ast.walk(value)
        if isinstance(call, ast.Call)
        and _goes_past(call)
        and not _without_gradient(script, call)
        and not _is_of_another_step(script, loop, call)
    }
    for line, call in sorted(found.items()):
        message = f"`{ast.unparse(call.func)}` goes past DistributedDataParallel, so these gradients are not averaged"
        yield Finding(RULE.id, "warning", line, message, "call the wrapper; let its forward choose what to compute")


def _goes_past(call: ast.Call) -> bool:
    func = call.func
    if isinstance(func, ast.Attribute) and func.attr == "module":
        return isinstance(func.value, (ast.Name, ast.Attribute))
    return (
        isinstance(func, ast.Attribute)
        and func.attr not in _HARMLESS
        and isinstance(func.value, ast.Attribute)
        and func.value.attr == "module"
    )


def _is_of_another_step(script: Script, loop: ast.AST, call: ast.Call) -> bool:
    """Whether the wrapper is called in the loop as well, and a backward pass stands between: in a GAN, the gradients
    of the generator in the discriminator's step, which are set to zero before its own."""
    assert isinstance(call.func, ast.Attribute)
    calls = [each for each in ast.walk(loop) if isinstance(each, ast.Call)]
    passes = [each.lineno for each in calls if isinstance(each.func, ast.Attribute) and each.func.attr == "backward"]
    wrapper = ast.unparse(call.func.value)
    lines = [each.lineno for each in calls if ast.unparse(each.func) == wrapper and not _without_gradient(script, each)]
    return any(min(line, call.lineno) <= at < max(line, call.lineno) for line in lines for at in passes)


def _without_gradient(script: Script, call: ast.Call) -> bool:
    around = (item for parent in script.ancestors(call) if isinstance(parent, ast.With) for item in parent.items)
    return any("no_grad" in ast.unparse(item) for item in around) or _is_detached(script, call)


def _is_detached(script: Script, call: ast.Call) -> bool:
    parent = script.parents[call]
    return isinstance(parent, ast.Attribute) and parent.attr == "detach"


RULE = Rule(
    id="DDP508",
    title="Training goes through the wrapper",
    why="""\
DistributedDataParallel prepares the averaging of gradients in its own forward. What is computed through `model.module`
(its call, or a method such as `model.module.loss(x)`) has gradients that stay this rank's; the weights go apart
without an error (M3).""",
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
    loss = nn.functional.mse_loss(model.module(x), y)
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
    loss.backward()
    optimizer.step()
""",
    check=check,
    target="cpu",
)
