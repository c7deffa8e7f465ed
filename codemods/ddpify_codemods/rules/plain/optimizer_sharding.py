"""DDP618: with --optimizer-sharding, torch's ZeroRedundancyOptimizer as by hand."""

from __future__ import annotations

import ast
from collections.abc import Iterator
from dataclasses import replace

from ...facts.optimizer_classes import is_optimizer_class
from ...facts.optimizers import optimizers
from ...facts.origins import origins
from ...facts.script import Script
from ...rule import Edit, Finding, Insert, Replace, Rule
from ...targets import Target
from ..exact import optimizer_sharding as exact
from .words import REMEDY, is_quiet

_CLASS = ("from torch.distributed.optim import ZeroRedundancyOptimizer",)
_ASKS_DEFAULTS = ("torch.optim.lr_scheduler.OneCycleLR", "torch.optim.lr_scheduler.CyclicLR")


def check(script: Script, target: Target) -> Iterator[Edit | Finding]:
    """Hand over the class of each optimizer, and put its state together where it is saved."""
    if not target.shards_optimizers:
        return
    for item in exact.check(script, target):
        if isinstance(item, Finding):
            yield replace(item, rule=RULE.id)
        elif isinstance(item, Replace):
            yield replace(item, imports=(), modules=_CLASS)
        else:
            yield item
    made = {found.call for found in optimizers(script) if isinstance(found.call, ast.Call)}
    made = {call for call in made if is_optimizer_class(script, call.func)}
    yield from _groups(script)
    done: set[tuple[ast.stmt, str]] = set()
    for call in script.find(ast.Call):
        if script.qualified(call.func) in _ASKS_DEFAULTS:
            message = "torch's ZeroRedundancyOptimizer does not tell this scheduler the defaults of its optimizer"
            yield Finding(RULE.id, "refused", call.lineno, message, REMEDY)
        elif isinstance(call.func, ast.Attribute) and call.func.attr == "state_dict":
            owner = call.func.value
            if any(each in made for each in origins(script, owner)):
                yield from _put_together(script, target, call, ast.unparse(owner), done)


def _put_together(
    script: Script, target: Target, call: ast.Call, name: str, done: set[tuple[ast.stmt, str]]
) -> Iterator[Edit]:
    at = script.statement(call)
    if (at, name) not in done:
        done.add((at, name))
        yield Insert(at, f"{name}.consolidate_state_dict()", "put the optimizer's state together on rank 0")
    saves = isinstance(at, ast.Expr) and isinstance(at.value, ast.Call) and script.qualified(at.value.func)
    if saves != "torch.save" or not is_quiet(script, at.value):  # type: ignore[attr-defined]
        yield Replace(
            call, f"{{}} if {target.words.is_rank_0} else None", "only rank 0 has it", modules=target.words.imports
        )


def _groups(script: Script) -> Iterator[Edit]:
    """Groups must hold lists: ZeroRedundancyOptimizer goes through their parameters twice."""
    for group in script.find(ast.Dict):
        for key, value in zip(group.keys, group.values, strict=True):
            if isinstance(key, ast.Constant) and key.value == "params" and _is_iterator(script, value):
                message = "ZeroRedundancyOptimizer goes through the parameters twice"
                yield Replace(value, "list({})", message)


def _is_iterator(script: Script, value: ast.expr) -> bool:
    """Whether it may be gone through once only."""
    for each in origins(script, value):
        is_list = isinstance(each, ast.Call) and script.qualified(each.func) in ("list", "sorted", "tuple")
        if isinstance(each, (ast.Call, ast.GeneratorExp)) and not is_list:
            return True
    return False


RULE = Rule(
    id="DDP618",
    title="Keep a part of the optimizer's state on each rank",
    why="""\
Asked for by --optimizer-sharding: torch's ZeroRedundancyOptimizer (ZeRO, stage 1), as its tutorial has it. Where a
checkpoint is saved, `consolidate_state_dict()` puts the state together on rank 0 first: all ranks call it. Groups hold
lists, for it goes through iterators twice, and would find nothing the second time. Where its class lacks what the
optimizer has (OneCycleLR asks for its defaults), the exact style has it.""",
    before="""\
import torch
from torch.utils.data import DataLoader, TensorDataset

dataset = TensorDataset(torch.rand(64, 4), torch.rand(64, 1))
loader = DataLoader(dataset, batch_size=8, shuffle=True)
model = torch.nn.Linear(4, 1)
optimizer = torch.optim.Adam(model.parameters(), 1e-3)
for x, y in loader:
    loss = torch.nn.functional.mse_loss(model(x), y)
    optimizer.zero_grad()
    loss.backward()
    optimizer.step()
torch.save({"model": model.state_dict(), "optimizer": optimizer.state_dict()}, "last.pt")
""",
    after="""\
import os
import sys

import torch
import torch.distributed as dist
from torch.distributed.optim import ZeroRedundancyOptimizer
from torch.nn.parallel import DistributedDataParallel
from torch.utils.data import DataLoader, TensorDataset
from torch.utils.data.distributed import DistributedSampler

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
optimizer = ZeroRedundancyOptimizer(model.parameters(), optimizer_class=torch.optim.Adam, lr=1e-3)
for x, y in loader:
    loss = torch.nn.functional.mse_loss(ddp_model(x), y)
    optimizer.zero_grad()
    loss.backward()
    optimizer.step()
optimizer.consolidate_state_dict()
if dist.get_rank() == 0:
    torch.save({"model": model.state_dict(), "optimizer": optimizer.state_dict()}, "last.pt")
dist.destroy_process_group()
""",
    check=check,
    target="cpu",
    option="optimizer_sharding",
)
