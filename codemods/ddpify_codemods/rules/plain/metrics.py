"""DDP658: a metric that has the samples of all ranks does not sum over ranks itself."""

from __future__ import annotations

import ast
from collections.abc import Iterator

from ...facts.script import Script
from ...facts.sync_metrics import calls_of_metrics, derives_from_metric, makes_metric
from ...rule import ChangeArgument, Edit, Finding, Rule
from ...targets import Target
from .words import program_of

_TWICE = "sums over all processes by itself, and may be given the samples of all on each: they would count W times"


def check(script: Script, target: Target) -> Iterator[Edit | Finding]:
    """Have metrics computed from what they were given; refuse where some were given a rank's samples alone."""
    program = program_of(script)
    for node in script.find(ast.ClassDef):
        if derives_from_metric(script, node):
            remedy = "give the metric `sync_on_compute=False`, if so; --style exact needs no change"
            yield Finding(RULE.id, "warning", node.lineno, f"{node.name} {_TWICE}", remedy)
    for call in script.find(ast.Call):
        if script.qualified(call.func).startswith("monai.metrics."):
            remedy = "read no sum or count of it; --style exact needs no change"
            yield Finding(RULE.id, "warning", call.lineno, f"`{ast.unparse(call.func)}` {_TWICE}", remedy)
    made = [call for call in script.find(ast.Call) if makes_metric(script, call)]
    if not made and not any(makes_metric(each, call) for each in program.scripts for call in each.find(ast.Call)):
        return
    calls, others = calls_of_metrics(program.scripts)
    found = program.followed.found
    calls = [*dict.fromkeys([*calls, *found.given_metrics])]
    apart = [call for call in calls if call in found.given_parts]
    if apart and (others or len(apart) < len(calls) or any({*call.args} <= found.read_same for call in apart)):
        here = {*script.find(ast.Call)}
        for call in apart:
            if call in here:
                message = f"`{ast.unparse(call)}` keeps a rank's samples, where metrics are given those of all ranks"
                yield Finding(RULE.id, "refused", call.lineno, message, "call .update(…), or use --style exact")
    elif not apart:
        for call in made:
            if not any(word.arg == "sync_on_compute" for word in call.keywords):
                message = "the metric is given the samples of all ranks: compute it from these"
                yield ChangeArgument(call, "sync_on_compute", "False", message)


RULE = Rule(
    id="DDP658",
    title="Metrics do not sum over ranks twice",
    why="""\
The metrics of torchmetrics find the process group, and sum over ranks in `compute()` what each has been given. Here
each is given the samples of all ranks: what is brought together for `update()`, or an evaluation that every rank goes
through as a whole. A confusion matrix would count each sample once per rank (E9). With `sync_on_compute=False` a metric
is computed from its own. Where metrics are called for the value of a batch, `accuracy(out, y)`, they keep a rank's own
samples, and stay as they are; a program that does both is refused.""",
    before="""\
import torch
from torch.utils.data import DataLoader, TensorDataset
from torchmetrics import MeanMetric

dataset = TensorDataset(torch.rand(64, 4), torch.rand(64, 1))
loader = DataLoader(dataset, batch_size=8, shuffle=True)
model = torch.nn.Linear(4, 1)
optimizer = torch.optim.SGD(model.parameters(), lr=0.1)
mean = MeanMetric()
for x, y in loader:
    loss = torch.nn.functional.mse_loss(model(x), y)
    optimizer.zero_grad()
    loss.backward()
    optimizer.step()
    mean.update(loss.item())
print(mean.compute().item())
""",
    after='''\
import os
import sys

import torch
import torch.distributed as dist
from torch.nn.parallel import DistributedDataParallel
from torch.utils.data import DataLoader, TensorDataset
from torch.utils.data.distributed import DistributedSampler
from torchmetrics import MeanMetric


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

dataset = TensorDataset(torch.rand(64, 4), torch.rand(64, 1))
loader = DataLoader(
    dataset,
    batch_size=8 // dist.get_world_size(),
    sampler=DistributedSampler(dataset, shuffle=True),
)
model = torch.nn.Linear(4, 1)
ddp_model = DistributedDataParallel(model)
optimizer = torch.optim.SGD(model.parameters(), lr=0.1)
mean = MeanMetric(sync_on_compute=False)
for x, y in loader:
    loss = torch.nn.functional.mse_loss(ddp_model(x), y)
    optimizer.zero_grad()
    loss.backward()
    optimizer.step()
    mean.update(mean_over_ranks(loss.item()))
print(mean.compute().item())
dist.destroy_process_group()
''',
    check=check,
    target="cpu",
)
