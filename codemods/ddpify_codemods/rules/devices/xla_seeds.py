"""DDP119: the device's own random numbers are seeded too."""

from __future__ import annotations

import ast
from collections.abc import Iterator

from ...facts.distribution import joins_process_group
from ...facts.flow.noise import has_noise
from ...facts.launch import is_before_launch
from ...facts.script import Script
from ...facts.seeds import is_surely_seeded, seeds_torch, seeds_worker
from ...rule import Edit, Finding, Insert, Rule
from ...targets import Target

_AS_TORCH = "torch.initial_seed()"
_NOT_READ_AGAIN = (ast.Call, ast.NamedExpr, ast.UnaryOp)  # and no device takes a negative seed


def check(script: Script, target: Target) -> Iterator[Edit | Finding]:
    """Seed the device beside each seed of torch, and where processes that draw noise may have none."""
    if not target.seed:
        return
    files = script.program.scripts if script.program is not None else (script,)
    joins = [(each, call) for each in files for call in each.find(ast.Call) if joins_process_group(each, call)]
    seeds = [
        (each, call)
        for each in files
        for call in each.find(ast.Call)
        if seeds_torch(each, call) and not seeds_worker(each, call) and not (joins and is_before_launch(each, call))
    ]
    message = f"seed the {target.name} device too"
    for each, call in seeds:
        statement = each.statement(call)
        whole = isinstance(statement, (ast.Expr, ast.Assign)) and statement.value is call
        if each.path == script.path and whole:
            yield Insert(statement, f"{target.seed}({_seed(call)})", message, "after", modules=target.modules)
    if any(has_noise(each, frozenset(), frozenset()) for each in files) and not is_surely_seeded(files, seeds):
        for each, call in joins:
            if each.path == script.path:
                message = "draw other noise on each rank, as torch does where it has no seed"
                code, modules = f"{target.seed}({_AS_TORCH})", (*target.modules, "import torch")
                yield Insert(script.statement(call), code, message, "after", modules=modules)


def _seed(call: ast.Call) -> str:
    """The source of a seed that torch was given: as it was written, where it may be read again."""
    again = len(call.args) == 1 and not any(isinstance(node, _NOT_READ_AGAIN) for node in ast.walk(call.args[0]))
    return ast.unparse(call.args[0]) if again else _AS_TORCH


RULE = Rule(
    id="DDP119",
    title="Seed XLA devices",
    why="""`torch.manual_seed` seeds CPUs and GPUs, but not XLA devices, which start from a seed of their own: dropout
and weights that are drawn on the device would not depend on the script's seed (S1). It is one seed for all processes:
in a script of DistributedDataParallel that draws noise and is not sure to seed torch, each takes torch's own, or all
would draw the same masks (S2).""",
    before="""\
import torch

torch.manual_seed(7)
model = torch.nn.Linear(4, 1).to("cuda")
optimizer = torch.optim.SGD(model.parameters(), lr=0.1)
for _ in range(10):
    loss = model(torch.rand(8, 4, device="cuda")).mean()
    optimizer.zero_grad()
    loss.backward()
    optimizer.step()
""",
    after="""\
import ddpify_runtime.xla
import torch
import torch_xla
from ddpify_runtime import (
    DistributedDataParallel,
    destroy_process_group,
    init_process_group,
)

init_process_group("xla", init_method="xla://")

torch.manual_seed(7)
torch_xla.manual_seed(7)
model = torch.nn.Linear(4, 1).to(torch_xla.device())
model = DistributedDataParallel(model, gradient_as_bucket_view=True)
optimizer = torch.optim.SGD(model.parameters(), lr=0.1)
for _ in range(10):
    loss = model(torch.rand(8, 4, device=torch_xla.device())).mean()
    optimizer.zero_grad()
    loss.backward()
    optimizer.step()
    torch_xla.sync()

destroy_process_group()
""",
    check=check,
    target="xla",
)
