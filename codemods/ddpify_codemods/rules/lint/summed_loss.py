"""DDP522: a loss that is a sum over the batch, whose gradients are averaged over the ranks (L1)."""

from __future__ import annotations

import ast
from collections.abc import Iterator

from ...facts.hand_written import makes_loss, reduces, training_loops, values_of, wrap_calls
from ...facts.script import Script
from ...rule import Edit, Finding, Rule
from ...targets import Target


def check(script: Script, target: Target) -> Iterator[Edit | Finding]:
    """Report losses with reduction="sum" that reach a backward pass as they are."""
    if not wrap_calls(script) or reduces(script):
        return
    summing = frozenset(script.qualified(call.func) for call in script.find(ast.Call) if _sums(script, call))
    for loop in training_loops(script):
        values = makes_loss(script, loop)
        if any(_scales(part) for value in values for part in ast.walk(value)):
            continue
        for call in (part for value in values for part in ast.walk(value) if isinstance(part, ast.Call)):
            made = [] if _sums(script, call) else values_of(script, call.func, summing)
            if _sums(script, call) or (made and all(_sums(script, value) for value in made)):
                message = "the gradients of a sum are averaged over W ranks: they are W times too small"
                remedy = "multiply the loss by dist.get_world_size(), or use a mean"
                yield Finding(RULE.id, "warning", call.lineno, message, remedy)


def _scales(node: ast.AST) -> bool:
    """Whether a number is multiplied or divided: by the number of ranks, or of the samples."""
    if isinstance(node, ast.BinOp):
        return isinstance(node.op, ast.Div | ast.Mult)
    called = node.func if isinstance(node, ast.Call) else None
    return isinstance(called, ast.Attribute) and called.attr in ("div", "div_", "mul", "mul_", "true_divide")


def _sums(script: Script, call: ast.Call) -> bool:
    if not script.qualified(call.func).startswith("torch.nn."):
        return False
    return any(
        isinstance(word.value, ast.Constant)
        and (
            (word.arg == "reduction" and word.value.value == "sum")
            or (word.arg == "size_average" and word.value.value is False)
        )
        for word in call.keywords
    )


RULE = Rule(
    id="DDP522",
    title="Summed losses are scaled",
    why="""\
DistributedDataParallel divides the sum of the gradients by the number of ranks. That is right for the mean of a batch;
a loss that is a sum gets 1/W of its gradient, as if the learning rate depended on the number of ranks (L1).""",
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
    loss = nn.functional.mse_loss(model(x), y, reduction="sum")
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
    loss = nn.functional.mse_loss(model(x), y, reduction="sum") * world_size
    loss.backward()
    optimizer.step()
""",
    check=check,
    target="cpu",
)
