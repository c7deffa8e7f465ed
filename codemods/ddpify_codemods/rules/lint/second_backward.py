"""DDP509: a second backward pass of one forward, which is not averaged (L10)."""

from __future__ import annotations

import ast
from collections.abc import Iterator
from itertools import pairwise

from ...facts.hand_written import backward_calls, wrap_calls
from ...facts.script import Script
from ...rule import Edit, Finding, Rule
from ...targets import Target


def check(script: Script, target: Target) -> Iterator[Edit | Finding]:
    """Report backward passes that keep the graph, and are followed by another one, but for those that say in whose
    parameters they leave gradients: they do not go through the others."""
    if not wrap_calls(script):
        return
    calls = backward_calls(script)
    for call, following in pairwise(calls):
        if (
            _keeps_graph(call)
            and script.scope(call) is script.scope(following)
            and not _other_branch(script, call, following)
        ):
            message = "gradients are averaged in one backward pass per forward: those of this one stay local"
            remedy = "add the losses and call backward once, or compute the forward again"
            yield Finding(RULE.id, "warning", following.lineno, message, remedy)


def _keeps_graph(call: ast.Call) -> bool:
    if any(word.arg == "inputs" for word in call.keywords):
        return False
    given = (word.value for word in call.keywords if word.arg == "retain_graph")
    return any(isinstance(value, ast.Constant) and value.value is True for value in given)


def _other_branch(script: Script, call: ast.Call, following: ast.Call) -> bool:
    """Whether the two are alternatives."""
    branches = {parent for parent in script.ancestors(call) if isinstance(parent, ast.If)}
    return any(
        any(following in ast.walk(part) for part in branch.orelse)
        for branch in branches
        if following in ast.walk(branch)
    )


RULE = Rule(
    id="DDP509",
    title="One backward for one forward",
    why="""\
The averaging is armed in forward and done when the first backward pass ends. A second backward of the same graph adds
gradients that nobody averages: the weights of the ranks go apart, without an error (L10).""",
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
    output = model(x)
    nn.functional.mse_loss(output, y).backward(retain_graph=True)
    output.abs().mean().backward()
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
    output = model(x)
    (nn.functional.mse_loss(output, y) + output.abs().mean()).backward()
    optimizer.step()
""",
    check=check,
    target="cpu",
)
