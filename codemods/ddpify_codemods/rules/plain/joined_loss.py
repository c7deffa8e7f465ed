"""DDP639: a loss that couples the samples of a batch is computed of the batch of all ranks."""

from __future__ import annotations

import ast
from collections.abc import Iterator

from ...facts.script import Script
from ...rule import Edit, Finding, Insert, Replace, Rule
from ...targets import Target
from .joined_once import PREFIXES, repeated
from .joining_functions import joining_functions
from .words import REMEDY, is_here, program_of

_MESSAGE = "a loss of the batch of all ranks"


def check(script: Script, target: Target) -> Iterator[Edit | Finding]:
    """Bring together, with gradients, what makes losses that couple samples."""
    found = program_of(script).followed.found
    kinds: dict[str, bool] = {}
    joins: dict[ast.expr, str] = {}
    for node, reductions in sorted(found.joined.items(), key=lambda one: (one[0].lineno, one[0].col_offset)):
        if not any(is_here(script, each.script) for each in reductions):
            continue
        names = {"batch" if each.kind == "rows" else str(each.kind) for each in reductions}
        if problem := _problem(node, names, script, target):
            yield Finding(RULE.id, "refused", node.lineno, problem, REMEDY)
            continue
        name = names.pop()
        kinds[name] = kinds.get(name, False) or node in found.apart_quietly
        joins[node] = name
    yield from _edits(script, joins, target)
    makers = [script.parents[node] for node in joins]
    made = next((f"`{ast.unparse(each.func)}`" for each in makers if isinstance(each, ast.Call)), "it")
    for call in sorted((each for each in found.given_of_all if each in script.parents), key=lambda each: each.lineno):
        message = f"every rank computes `{ast.unparse(call.func)}` with the batch of all ranks: what {made} makes of it"
        remedy = "right, but no faster; --style exact divides it"
        yield Finding(RULE.id, "warning", call.lineno, f"{message} is not seen to keep a row for each sample", remedy)
    if kinds:
        yield joining_functions(script, kinds, target)


def _edits(script: Script, joins: dict[ast.expr, str], target: Target) -> Iterator[Edit]:
    """Bring each operand together where it stands, or once where the loss takes it several times."""
    modules = target.words.imports
    once: set[ast.expr] = set()
    for group in repeated(script, joins):
        first, kinds = group[0], {joins[node] for node in group}
        if len(kinds) > 1:
            continue
        once |= {*group}
        kind = kinds.pop()
        name = f"{PREFIXES[kind]}_{first.id}"
        code = f"{name} = differentiable_{kind}({first.id})"
        yield Insert(script.statement(first), code, _MESSAGE, modules=modules)
        yield from (Replace(each, name, _MESSAGE) for each in group)
    for node in (each for each in joins if each not in once):
        yield Replace(node, f"differentiable_{joins[node]}({{}})", _MESSAGE, modules=modules)


def joins(script: Script) -> bool:
    """Whether losses of a file are computed of what all ranks have."""
    joined = program_of(script).followed.found.joined.values()
    return any(is_here(script, each.script) for reductions in joined for each in reductions)


def _problem(node: ast.expr, names: set[str], script: Script, target: Target) -> str:
    found = program_of(script).followed.found
    if not target.words.all_gather:
        return f"{target.words.name} has nothing that gradients pass through for a loss that couples samples"
    if len(names) > 1:
        return f"`{ast.unparse(node)}` is a sum in one case and a mean in another"
    if node in found.apart_quietly and node in found.joined_quietly:
        return f"`{ast.unparse(node)}` is computed here without gradients of divided batches and of whole ones"
    return ""


RULE = Rule(
    id="DDP639",
    title="Compute a loss that couples samples of the batch of all ranks",
    why="""\
A loss that is no mean and no sum over samples (Dice, the root of a mean, a contrastive loss) is another one of each
rank's part of the batch (L7). What it is made of is brought together first: sums and means by an all-reduce, outputs
and targets by an all-gather, both with gradients through them. Each rank computes the loss of the whole batch, and the
average of DistributedDataParallel is its gradient.""",
    before="""\
import torch
from torch.utils.data import DataLoader, TensorDataset

dataset = TensorDataset(torch.rand(64, 4), torch.rand(64, 1))
loader = DataLoader(dataset, batch_size=8, shuffle=True)
model = torch.nn.Linear(4, 1)
optimizer = torch.optim.SGD(model.parameters(), lr=0.1)
for x, y in loader:
    loss = torch.sqrt(torch.nn.functional.mse_loss(model(x), y))
    optimizer.zero_grad()
    loss.backward()
    optimizer.step()
""",
    after='''\
import os
import sys

import torch
import torch.distributed as dist
from torch.nn.parallel import DistributedDataParallel
from torch.utils.data import DataLoader, TensorDataset
from torch.utils.data.distributed import DistributedSampler


class DifferentiableSum(torch.autograd.Function):
    """The sum of a tensor over all processes, and of the gradients that come back to it."""

    @staticmethod
    def forward(context, value):
        total = value.contiguous().clone()
        dist.all_reduce(total)
        return total

    backward = forward


def differentiable_mean(value):
    """The mean of a tensor over all processes, through which gradients pass."""
    return DifferentiableSum.apply(value) / dist.get_world_size()


dist.init_process_group("gloo")
if dist.get_rank() != 0:
    sys.stdout = open(os.devnull, "w")  # rank 0 prints
torch.manual_seed(0)

dataset = TensorDataset(torch.rand(64, 4), torch.rand(64, 1))
loader = DataLoader(
    dataset,
    batch_size=8 // dist.get_world_size(),
    sampler=DistributedSampler(dataset, shuffle=True),
)
model = torch.nn.Linear(4, 1)
ddp_model = DistributedDataParallel(model)
optimizer = torch.optim.SGD(model.parameters(), lr=0.1)
for x, y in loader:
    loss = torch.sqrt(differentiable_mean(torch.nn.functional.mse_loss(ddp_model(x), y)))
    optimizer.zero_grad()
    loss.backward()
    optimizer.step()

dist.destroy_process_group()
''',
    check=check,
    target="cpu",
)
