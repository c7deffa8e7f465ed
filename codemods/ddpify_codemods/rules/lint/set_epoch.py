"""DDP501: a DistributedSampler that never hears of the epoch (D2)."""

from __future__ import annotations

import ast
from collections.abc import Iterator

from ...facts.bindings import names_in
from ...facts.hand_written import backward_calls, called, loaders, loops_over
from ...facts.script import Script
from ...rule import Edit, Finding, Rule
from ...targets import Target


def check(script: Script, target: Target) -> Iterator[Edit | Finding]:
    """Report samplers that shuffle, are used epoch after epoch, and are never given the epoch."""
    if any(called(call) == "set_epoch" for call in script.find(ast.Call)):
        return
    for loader in loaders(script):
        if loader.sampler is None or _is_false(loader.sampler, "shuffle"):
            continue
        loops = [loop for loop in loops_over(script, loader.name) if not _is_seeded(script, loader.sampler, loop)]
        if any(_is_repeated(script, loop) and backward_calls(script, loop) for loop in loops):
            message = "this sampler is never told the epoch, so every epoch has the order of the first"
            remedy = "call sampler.set_epoch(epoch) at the head of each epoch"
            yield Finding(RULE.id, "warning", loader.sampler.lineno, message, remedy)


def _is_false(call: ast.Call, name: str) -> bool:
    return any(
        word.arg == name and isinstance(word.value, ast.Constant) and not word.value.value for word in call.keywords
    )


def _is_seeded(script: Script, sampler: ast.Call, batches: ast.For) -> bool:
    """Whether a sampler is made anew for each loop over its batches, with a seed that is counted: `seed=epoch`,
    `seed=next(orders)`; not in a loop over folds, around one over epochs."""
    seeds = [word.value for word in sampler.keywords if word.arg == "seed"]
    if any(isinstance(each, ast.Call) and called(each) == "next" for each in seeds):
        return True
    loops = [parent for parent in script.ancestors(sampler) if isinstance(parent, ast.For)]
    epochs = next((each for each in script.ancestors(batches) if isinstance(each, ast.For | ast.While)), None)
    counts = [loop for loop in loops if any(names_in(seed) & names_in(loop.target) for seed in seeds)]
    return bool(counts) and (epochs is None or epochs in counts)


def _is_repeated(script: Script, loop: ast.For) -> bool:
    """Whether a loop runs within another one, here or where its function is called with an epoch."""
    around = [parent for parent in script.ancestors(loop) if isinstance(parent, (ast.For, ast.While))]
    scope = script.scope(loop)
    if around or isinstance(scope, ast.Module):
        return bool(around)
    calls = [call for call in script.find(ast.Call) if called(call) == scope.name]
    loops = [parent for call in calls for parent in script.ancestors(call) if isinstance(parent, (ast.For, ast.While))]
    return any(isinstance(parent, ast.For) and "range" in names_in(parent.iter) for parent in loops)


RULE = Rule(
    id="DDP501",
    title="The sampler is told the epoch",
    why="""\
DistributedSampler shuffles with its seed plus the epoch, which it only knows from set_epoch(). Without the call every
epoch has the same order and the same batches (D2).""",
    before="""\
import torch
import torch.distributed as dist
from torch import nn
from torch.nn.parallel import DistributedDataParallel as DDP
from torch.utils.data import DataLoader, DistributedSampler, TensorDataset

dist.init_process_group("gloo")
dataset = TensorDataset(torch.rand(64, 4), torch.rand(64, 1))
sampler = DistributedSampler(dataset)
loader = DataLoader(dataset, batch_size=8, sampler=sampler)
model = DDP(nn.Linear(4, 1))
optimizer = torch.optim.SGD(model.parameters(), lr=0.1)
for epoch in range(3):
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
sampler = DistributedSampler(dataset)
loader = DataLoader(dataset, batch_size=8, sampler=sampler)
model = DDP(nn.Linear(4, 1))
optimizer = torch.optim.SGD(model.parameters(), lr=0.1)
for epoch in range(3):
    sampler.set_epoch(epoch)
    for x, y in loader:
        optimizer.zero_grad()
        nn.functional.mse_loss(model(x), y).backward()
        optimizer.step()
""",
    check=check,
    target="cpu",
)
