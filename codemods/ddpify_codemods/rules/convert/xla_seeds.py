"""DDP119: the device's own random numbers are seeded too."""

from __future__ import annotations

import ast
from collections.abc import Iterator

from ...facts.script import Script
from ...rule import Edit, Finding, Insert, Rule
from ...targets import Target


def check(script: Script, target: Target) -> Iterator[Edit | Finding]:
    """Seed the device beside each seed of torch."""
    for node in script.find(ast.Call) if target.seed else ():
        if script.qualified(node.func) in ("torch.manual_seed", "torch.random.manual_seed"):
            yield from _seeded(script, target, node)


def _seeded(script: Script, target: Target, call: ast.Call) -> Iterator[Insert]:
    statement = script.statement(call)
    simple = len(call.args) == 1 and not any(isinstance(node, ast.Call) for node in ast.walk(call.args[0]))
    if simple and isinstance(statement, ast.Expr) and statement.value is call:
        code = f"{target.seed}({ast.unparse(call.args[0])})"
        yield Insert(statement, code, f"seed the {target.name} device too", "after", modules=target.modules)


RULE = Rule(
    id="DDP119",
    title="Seed XLA devices",
    why="""`torch.manual_seed` seeds CPUs and GPUs, but not XLA devices, which start from a seed of their own: dropout
and weights that are drawn on the device would not depend on the script's seed (S1).""",
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
