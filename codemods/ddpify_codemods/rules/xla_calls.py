"""DDP119: the device's own random numbers are seeded too, and inference mode, which XLA lacks, becomes no_grad."""

from __future__ import annotations

import ast
from collections.abc import Iterator

from ..facts.script import Script
from ..rule import Edit, Finding, Insert, Replace, Rule
from ..targets import Target


def check(script: Script, target: Target) -> Iterator[Edit | Finding]:
    """Rewrite the calls of one script that mean less on an XLA device than on a GPU."""
    for node in script.find(ast.Call) if target.seed else ():
        if script.qualified(node.func) in ("torch.manual_seed", "torch.random.manual_seed"):
            yield from _seeded(script, target, node)
    if not target.has_inference_mode:
        yield from _without_inference_mode(script)


def _without_inference_mode(script: Script) -> Iterator[Replace]:
    for node in script.find(ast.Call):
        if script.qualified(node.func) == "torch.inference_mode":
            yield from _no_grad(node)
    for function in script.find(ast.FunctionDef):
        for decorator in function.decorator_list:
            if script.qualified(decorator) == "torch.inference_mode":
                yield _replaced(decorator, "torch.no_grad()")


def _seeded(script: Script, target: Target, call: ast.Call) -> Iterator[Insert]:
    statement = script.statement(call)
    simple = len(call.args) == 1 and not any(isinstance(node, ast.Call) for node in ast.walk(call.args[0]))
    if simple and isinstance(statement, ast.Expr) and statement.value is call:
        code = f"{target.seed}({ast.unparse(call.args[0])})"
        yield Insert(statement, code, f"seed the {target.name} device too", "after", modules=target.modules)


def _no_grad(call: ast.Call) -> Iterator[Replace]:
    values = [*call.args, *(keyword.value for keyword in call.keywords)]
    if not values:
        yield _replaced(call, "torch.no_grad()")
    elif len(values) == 1:
        yield _replaced(call, "torch.set_grad_enabled(not ({}))", (values[0],))


def _replaced(node: ast.expr, template: str, parts: tuple[ast.expr, ...] = ()) -> Replace:
    return Replace(node, template, "use no_grad: XLA has no inference mode", modules=("import torch",), parts=parts)


RULE = Rule(
    id="DDP119",
    title="Seed XLA devices, and do without inference mode",
    why="""`torch.manual_seed` seeds CPUs and GPUs, but not XLA devices, which start from a seed of their own: dropout
and weights that are drawn on the device would not depend on the script's seed (S1). Tensors on XLA devices cannot be
used in `torch.inference_mode()` (X8).""",
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
with torch.inference_mode():
    print(model(torch.ones(1, 4, device="cuda")))
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
with torch.no_grad():
    print(model(torch.ones(1, 4, device=torch_xla.device())))

destroy_process_group()
""",
    check=check,
    target="xla",
)
