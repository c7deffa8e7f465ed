"""DDP123: inference mode, which XLA lacks, becomes no_grad."""

from __future__ import annotations

import ast
from collections.abc import Iterator

from ...facts.script import Script
from ...rule import Edit, Finding, Replace, Rule
from ...targets import Target


def check(script: Script, target: Target) -> Iterator[Edit | Finding]:
    """Take no_grad for inference mode."""
    if target.has_inference_mode:
        return
    for node in script.find(ast.Call):
        if script.qualified(node.func) == "torch.inference_mode":
            yield from _no_grad(node)
    for function in script.find(ast.FunctionDef):
        for decorator in function.decorator_list:
            if script.qualified(decorator) == "torch.inference_mode":
                yield _replaced(decorator, "torch.no_grad()")


def _no_grad(call: ast.Call) -> Iterator[Replace]:
    values = [*call.args, *(keyword.value for keyword in call.keywords)]
    if not values:
        yield _replaced(call, "torch.no_grad()")
    elif len(values) == 1:
        yield _replaced(call, "torch.set_grad_enabled(not ({}))", (values[0],))


def _replaced(node: ast.expr, template: str, parts: tuple[ast.expr, ...] = ()) -> Replace:
    return Replace(node, template, "use no_grad: XLA has no inference mode", modules=("import torch",), parts=parts)


RULE = Rule(
    id="DDP123",
    title="Do without inference mode",
    why="""\
Tensors on XLA devices cannot be used in `torch.inference_mode()`: "Cannot set version_counter for inference tensor"
(X8). `torch.no_grad()` gives the same numbers.""",
    before="""\
import torch

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
