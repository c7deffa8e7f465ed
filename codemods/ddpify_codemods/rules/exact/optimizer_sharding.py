"""DDP125: with --optimizer-sharding each process keeps the state of some parameters (ZeRO)."""

from __future__ import annotations

import ast
from collections.abc import Iterator

from ...facts.called_modules import last_name
from ...facts.devices import source
from ...facts.optimizer_classes import is_optimizer_class
from ...facts.optimizers import optimizers
from ...facts.origins import origins
from ...facts.script import Script
from ...facts.torch_optimizers import ARGUMENTS
from ...rule import ChangeArgument, Edit, Finding, Replace, Rule
from ...targets import Target

_OPTION = "optimizer-sharding"
_WITHOUT = "convert without --optimizer-sharding"


def check(script: Script, target: Target) -> Iterator[Edit | Finding]:
    """Hand the class of each optimizer to torch's ZeroRedundancyOptimizer."""
    if _OPTION not in target.options:
        for line in script.view.sharded if script.view else ():
            message = f"ZeroRedundancyOptimizer is not for the {target.name} target"
            yield Finding(RULE.id, "refused", line, message, "ddpify --target none goes back to one device")
        return
    if not target.shards_optimizers:
        return
    calls = [found.call for found in optimizers(script) if isinstance(found.call, ast.Call)]
    for call in calls:
        if is_optimizer_class(script, call.func):
            yield from _sharded(script, call)
        elif last_name(call.func) not in script.defined:
            message = f"{ast.unparse(call.func)} builds the optimizer, of which a process cannot keep a part"
            yield Finding(RULE.id, "refused", call.lineno, message, f"build one of torch.optim, or {_WITHOUT}")
    made = set(calls)
    for node in script.find(ast.Attribute):
        if node.attr == "state" and any(each in made for each in origins(script, node.value)):
            message = "each process keeps the state of some parameters, and this looks at that of all"
            yield Finding(RULE.id, "refused", node.lineno, message, f"leave it out, or {_WITHOUT}")


def _sharded(script: Script, call: ast.Call) -> Iterator[Edit | Finding]:
    name = script.qualified(call.func)
    names = ARGUMENTS.get(name.rpartition(".")[2]) if name.startswith("torch.optim.") else ()
    if _is_own(script, call.func) or names is None:
        message = f"the step of {ast.unparse(call.func)} may look at all parameters, of which each process keeps some"
        yield Finding(RULE.id, "refused", call.lineno, message, f"use another one of torch.optim, or {_WITHOUT}")
        return
    positional = call.args[1:]
    if len(positional) > len(names or ("lr",)) or any(isinstance(each, ast.Starred) for each in call.args):
        message = "these arguments of the optimizer have no names here"
        yield Finding(RULE.id, "refused", call.lineno, message, "write them as keywords: lr=…")
        return
    message = f"keep a part of the state of {ast.unparse(call.func)} on each process"
    code = source(script, call.func)
    yield Replace(call.func, "ZeroRedundancyOptimizer", message, imports=("ZeroRedundancyOptimizer",))
    yield ChangeArgument(call, "optimizer_class", code, "", names=names or ("lr",))


def _is_own(script: Script, func: ast.expr) -> bool:
    """Whether it is a class that the program itself defines."""
    return last_name(func) in script.defined or any(last_name(each) in script.defined for each in origins(script, func))


RULE = Rule(
    id="DDP125",
    title="Keep a part of the optimizer's state on each process",
    why="""\
Asked for by --optimizer-sharding. Adam keeps two numbers for each parameter, on every process. With torch's
ZeroRedundancyOptimizer (ZeRO, stage 1) each process keeps those of some parameters, makes their step, and sends them to
the others: the same bits as without, for one broadcast of each parameter in each step. `optimizer.state_dict()` is
whole on rank 0, so checkpoints are those of one process. Optimizers that look at all parameters (LBFGS, those of the
script itself or of a library) and reads of `optimizer.state` are refused.""",
    before="""\
import torch
from torch import nn, optim

model = nn.Linear(8, 2)
optimizer = optim.Adam(model.parameters(), 1e-3, weight_decay=0.1)
for _ in range(10):
    loss = model(torch.rand(16, 8)).square().mean()
    optimizer.zero_grad()
    loss.backward()
    optimizer.step()
torch.save(optimizer.state_dict(), "optimizer.pt")
""",
    after="""\
import torch
from ddpify_runtime import (
    DistributedDataParallel,
    ZeroRedundancyOptimizer,
    destroy_process_group,
    init_process_group,
    rank_zero_only,
)
from torch import nn, optim

init_process_group("gloo")

model = nn.Linear(8, 2)
model = DistributedDataParallel(model)
optimizer = ZeroRedundancyOptimizer(
    model.parameters(),
    optimizer_class=optim.Adam,
    lr=1e-3,
    weight_decay=0.1,
)
for _ in range(10):
    loss = model(torch.rand(16, 8)).square().mean()
    optimizer.zero_grad()
    loss.backward()
    optimizer.step()
rank_zero_only(torch.save)(optimizer.state_dict(), "optimizer.pt")
destroy_process_group()
""",
    check=check,
    target="cpu",
    option="optimizer_sharding",
)
