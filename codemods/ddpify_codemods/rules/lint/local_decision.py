"""DDP506: a learning rate or an end of training that depends on this rank's numbers (L19, E4)."""

from __future__ import annotations

import ast
import re
from collections.abc import Iterator

from ...facts.bindings import bindings, names_in
from ...facts.hand_written import backward_calls, called, loaders, reduces, training_loops, values_of, wrap_calls
from ...facts.script import Script
from ...rule import Edit, Finding, Rule
from ...targets import Target

_PLATEAU = frozenset({"torch.optim.lr_scheduler.ReduceLROnPlateau"})
_MEASURES = re.compile(r"loss|acc|best|patience|counter|metric|early|wait|score|improve", re.IGNORECASE)
_REMEDY = "average the number over the ranks first: dist.all_reduce(loss); loss /= dist.get_world_size()"


def check(script: Script, target: Target) -> Iterator[Edit | Finding]:
    """Report ReduceLROnPlateau and early stops in a script that shares out its data and brings no numbers together."""
    if not wrap_calls(script) or reduces(script) or not any(loader.sampler for loader in loaders(script)):
        return
    for leaving in script.find(ast.Break):
        if _depends_on_a_measure(script, leaving):
            message = "this rank's number decides when the loop ends: the others go on, and wait for ever"
            yield Finding(RULE.id, "warning", leaving.lineno, message, _REMEDY)
    for call in script.find(ast.Call):
        if not (isinstance(call.func, ast.Attribute) and call.func.attr == "step" and call.args):
            continue
        if values_of(script, call.func.value, _PLATEAU):
            message = (
                "this rank's number decides about the learning rate: the ranks' rates, then their weights, go apart"
            )
            yield Finding(RULE.id, "warning", call.lineno, message, _REMEDY)


def _depends_on_a_measure(script: Script, leaving: ast.Break) -> bool:
    """Whether it ends a loop that trains, below a condition on a loss, a score or the patience with one."""
    around = list(script.ancestors(leaving))
    loop = next((parent for parent in around if isinstance(parent, (ast.For, ast.While))), None)
    if loop is None or not _trains(script, loop):
        return False
    tests = [parent.test for parent in around[: around.index(loop)] if isinstance(parent, ast.If)]
    measured = [test for test in tests if any(_MEASURES.search(name) for name in names_in(test))]
    return any(not _is_of_whole_data(script, test) for test in measured)


def _is_of_whole_data(script: Script, test: ast.expr) -> bool:
    """Whether a condition takes a number of a loader that no sampler divides: `auc = test(model, valid_loader)`."""
    made = {loader.name: loader.sampler or loader.keywords.get("sampler") for loader in loaders(script)}
    scope = script.scope(test)
    numbers = [value for name in names_in(test) for value in bindings(script, scope).get(name, ())]
    given = [
        [part.id for part in call.args if isinstance(part, ast.Name) and part.id in made]
        for call in numbers
        if isinstance(call, ast.Call)
    ]
    of_data = [names for names in given if names]
    return bool(of_data) and all(made[name] is None for names in of_data for name in names)


def _trains(script: Script, loop: ast.For | ast.While) -> bool:
    training = {getattr(script.scope(inner), "name", "") for inner in training_loops(script)}
    calls = (part for part in ast.walk(loop) if isinstance(part, ast.Call))
    return bool(backward_calls(script, loop)) or any(called(call) in training for call in calls)


RULE = Rule(
    id="DDP506",
    title="Decisions are taken from global numbers",
    why="""\
DistributedDataParallel averages gradients, not learning rates. A scheduler that follows the loss of this rank's shard
lowers the rate on one rank earlier than on another; from then on the weights differ, and nothing notices (L19). An
early stop that follows it leaves the other ranks waiting (E4).""",
    before="""\
import torch
import torch.distributed as dist
from torch import nn
from torch.nn.parallel import DistributedDataParallel as DDP
from torch.utils.data import DataLoader, DistributedSampler, TensorDataset

dist.init_process_group("gloo")
train_set = TensorDataset(torch.rand(64, 4), torch.rand(64, 1))
val_set = TensorDataset(torch.rand(20, 4), torch.rand(20, 1))
train_loader = DataLoader(train_set, batch_size=8, sampler=DistributedSampler(train_set))
val_loader = DataLoader(val_set, batch_size=10, sampler=DistributedSampler(val_set, drop_last=True))
model = DDP(nn.Linear(4, 1))
optimizer = torch.optim.SGD(model.parameters(), lr=0.1)
scheduler = torch.optim.lr_scheduler.ReduceLROnPlateau(optimizer)
for epoch in range(3):
    train_loader.sampler.set_epoch(epoch)
    for x, y in train_loader:
        optimizer.zero_grad()
        nn.functional.mse_loss(model(x), y).backward()
        optimizer.step()
    loss = torch.zeros(1)
    with torch.no_grad():
        for x, y in val_loader:
            loss += nn.functional.mse_loss(model(x), y)
    scheduler.step(loss.item())
""",
    after="""\
import torch
import torch.distributed as dist
from torch import nn
from torch.nn.parallel import DistributedDataParallel as DDP
from torch.utils.data import DataLoader, DistributedSampler, TensorDataset

dist.init_process_group("gloo")
train_set = TensorDataset(torch.rand(64, 4), torch.rand(64, 1))
val_set = TensorDataset(torch.rand(20, 4), torch.rand(20, 1))
train_loader = DataLoader(train_set, batch_size=8, sampler=DistributedSampler(train_set))
val_loader = DataLoader(val_set, batch_size=10, sampler=DistributedSampler(val_set, drop_last=True))
model = DDP(nn.Linear(4, 1))
optimizer = torch.optim.SGD(model.parameters(), lr=0.1)
scheduler = torch.optim.lr_scheduler.ReduceLROnPlateau(optimizer)
for epoch in range(3):
    train_loader.sampler.set_epoch(epoch)
    for x, y in train_loader:
        optimizer.zero_grad()
        nn.functional.mse_loss(model(x), y).backward()
        optimizer.step()
    loss = torch.zeros(1)
    with torch.no_grad():
        for x, y in val_loader:
            loss += nn.functional.mse_loss(model(x), y)
    dist.all_reduce(loss)
    scheduler.step(loss.item() / dist.get_world_size())
""",
    check=check,
    target="cpu",
)
