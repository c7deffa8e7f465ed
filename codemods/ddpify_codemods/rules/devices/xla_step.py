"""DDP113: on XLA each step ends by running what it has recorded, and files are loaded through the host."""

from __future__ import annotations

import ast
from collections.abc import Iterator

from ...facts.devices import dotted
from ...facts.script import Script
from ...facts.updates import update_loops
from ...rule import Edit, Finding, Insert, Replace, Rule
from ...targets import Target


def check(script: Script, target: Target) -> Iterator[Edit | Finding]:
    """Insert torch_xla.sync() after the optimizer steps of one script."""
    if target.step:
        for statement in _updates(script):
            yield Insert(statement, target.step, "run the recorded step", "after", modules=target.modules)
    for keyword in script.find(ast.keyword) if target.loads_on_host else ():
        if keyword.arg == "map_location" and not isinstance(keyword.value, ast.Constant):
            yield Replace(keyword.value, '"cpu"', "load onto the host: files do not restore to XLA devices")


def _updates(script: Script) -> Iterator[ast.stmt]:
    optimizers = _optimizers(script)
    for statement in script.find(ast.Expr):
        if isinstance(statement.value, ast.Call) and _steps(script, statement.value, optimizers):
            yield statement
    for loop in update_loops(script):
        yield _block(script, loop)


def _block(script: Script, statement: ast.stmt) -> ast.stmt:
    """The `with torch.no_grad():` around a statement, or the statement."""
    parent = script.parents[statement]
    return parent if isinstance(parent, ast.With) else statement


def _optimizers(script: Script) -> set[str]:
    """Names of what has both its gradients cleared and its steps taken, or is built by torch.optim."""
    cleared = {dotted(node.value) for node in script.find(ast.Attribute) if node.attr == "zero_grad"}
    built = {
        dotted(name)
        for node in script.find(ast.Assign)
        if isinstance(node.value, ast.Call) and _is_optimizer_class(script.qualified(node.value.func))
        for name in node.targets
    }
    return (cleared | built) - {""}


def _is_optimizer_class(name: str) -> bool:
    return name.startswith("torch.optim.") and "lr_scheduler" not in name and "swa_utils" not in name


def _steps(script: Script, call: ast.Call, optimizers: set[str]) -> bool:
    if not isinstance(call.func, ast.Attribute) or call.func.attr != "step":
        return False
    scaled = bool(call.args) and dotted(call.args[0]) in optimizers
    return dotted(call.func.value) in optimizers or scaled


RULE = Rule(
    id="DDP113",
    title="Run each step on XLA",
    why="""XLA devices record operations and run them when they are told to: without that, the steps of a whole
epoch become one program (X5). `torch.load` cannot restore to an XLA device; load_state_dict copies from the
host.""",
    before="""\
import torch

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
