"""DDP511: parameters that get requires_grad after the model was wrapped (M6)."""

from __future__ import annotations

import ast
from collections.abc import Iterator

from ...facts.hand_written import wrap_calls
from ...facts.script import Script
from ...rule import Edit, Finding, Rule
from ...targets import Target


def check(script: Script, target: Target) -> Iterator[Edit | Finding]:
    """Report parameters that are frozen when the model is wrapped, unfrozen later, and not wrapped again."""
    wraps = sorted(call.lineno for call in wrap_calls(script))
    if not wraps or not any(line < wraps[0] and not on for line, on in _switches(script)):
        return
    for line, on in _switches(script):
        if on and line > wraps[-1]:
            message = (
                "DistributedDataParallel has listed the trainable parameters already: the gradients of these stay local"
            )
            yield Finding(
                RULE.id, "warning", line, message, "wrap the model again after unfreezing, or unfreeze before wrapping"
            )


def _switches(script: Script) -> Iterator[tuple[int, bool]]:
    """Where parameters are frozen (False) and unfrozen (True)."""
    for loop in script.find(ast.For):
        if "parameters()" not in ast.unparse(loop.iter):
            continue
        for node in (part for statement in loop.body for part in ast.walk(statement)):
            value = _requires_grad(node)
            if isinstance(value, ast.Constant) and isinstance(node, (ast.Assign, ast.Call)):
                yield node.lineno, bool(value.value)


def _requires_grad(node: ast.AST) -> ast.expr | None:
    """What `p.requires_grad = …` or `p.requires_grad_(…)` sets."""
    if isinstance(node, ast.Assign):
        attribute = node.targets[0]
        return node.value if isinstance(attribute, ast.Attribute) and attribute.attr == "requires_grad" else None
    if isinstance(node, ast.Call) and isinstance(node.func, ast.Attribute) and node.func.attr == "requires_grad_":
        return node.args[0] if node.args else ast.Constant(True)
    return None


RULE = Rule(
    id="DDP511",
    title="Unfrozen layers are wrapped again",
    why="""\
DistributedDataParallel lists the trainable parameters when it is built. A layer that is unfrozen later is trained by
the optimizer, but its gradients are never averaged: its weights differ between the ranks, without an error (M6).""",
    before="""\
import torch
import torch.distributed as dist
from torch import nn
from torch.nn.parallel import DistributedDataParallel as DDP
from torch.utils.data import DataLoader, DistributedSampler, TensorDataset

dist.init_process_group("gloo")
dataset = TensorDataset(torch.rand(64, 4), torch.rand(64, 1))
loader = DataLoader(dataset, batch_size=8, sampler=DistributedSampler(dataset))
net = nn.Sequential(nn.Linear(4, 8), nn.Linear(8, 1))
for parameter in net[0].parameters():
    parameter.requires_grad = False
model = DDP(net)
optimizer = torch.optim.SGD(net.parameters(), lr=0.1)
for epoch in range(4):
    loader.sampler.set_epoch(epoch)
    if epoch == 2:
        for parameter in net[0].parameters():
            parameter.requires_grad = True
    for x, y in loader:
        optimizer.zero_grad()
        nn.functional.mse_loss(model(x), y).backward()
        optimizer.step()
""",
    after="""\
import torch
import torch.distributed as dist
from torch import nn
from torch.nn.parallel import DistributedDataParallel as DDP
from torch.utils.data import DataLoader, DistributedSampler, TensorDataset

dist.init_process_group("gloo")
dataset = TensorDataset(torch.rand(64, 4), torch.rand(64, 1))
loader = DataLoader(dataset, batch_size=8, sampler=DistributedSampler(dataset))
net = nn.Sequential(nn.Linear(4, 8), nn.Linear(8, 1))
for parameter in net[0].parameters():
    parameter.requires_grad = False
model = DDP(net)
optimizer = torch.optim.SGD(net.parameters(), lr=0.1)
for epoch in range(4):
    loader.sampler.set_epoch(epoch)
    if epoch == 2:
        for parameter in net[0].parameters():
            parameter.requires_grad = True
        model = DDP(net)
    for x, y in loader:
        optimizer.zero_grad()
        nn.functional.mse_loss(model(x), y).backward()
        optimizer.step()
""",
    check=check,
    target="cpu",
)
