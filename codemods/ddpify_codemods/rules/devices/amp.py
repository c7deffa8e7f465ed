"""DDP112: mixed precision in XLA's words."""

from __future__ import annotations

import ast
from collections.abc import Iterator

from ...facts.devices import branches_of, is_gpu_string, quoted_like, source
from ...facts.script import Script
from ...rule import Edit, Finding, Replace, Rule
from ...targets import Target

_CUDA_AUTOCAST = {"torch.cuda.amp.autocast", "torch.cuda.amp.autocast_mode.autocast"}
_AUTOCAST = {"torch.autocast", "torch.amp.autocast", "torch.amp.autocast_mode.autocast"}
_SCALERS = {"torch.cuda.amp.GradScaler", "torch.amp.GradScaler", "torch.cuda.amp.grad_scaler.GradScaler"}
_ARGUMENTS = ("enabled", "dtype", "cache_enabled")


def check(script: Script, target: Target) -> Iterator[Edit | Finding]:
    """Name the target where autocast names CUDA; on CPUs that switches itself off."""
    if target.has_cuda_words or not target.is_accelerator:
        return
    dead = branches_of(script, target).dead
    for call in script.find(ast.Call):
        name = script.qualified(call.func)
        if call in dead:
            continue
        if name in _CUDA_AUTOCAST:
            yield _autocast(call, target)
        elif name in _AUTOCAST:
            yield from _renamed(script, target, call)
        elif name in _SCALERS:
            yield from (_renamed_scaler if target.scales_gradients else _scaler)(script, target, call)


def _autocast(call: ast.Call, target: Target) -> Replace:
    given = [*zip(_ARGUMENTS, call.args, strict=False), *((key.arg or "**", key.value) for key in call.keywords)]
    arguments = "".join(f", {name}={{}}" for name, _ in given)
    template = f'torch.autocast("{target.device_type}"{arguments})'
    message = f"let autocast work on the {target.name} device"
    return Replace(call, template, message, modules=("import torch",), parts=tuple(value for _, value in given))


def _renamed(script: Script, target: Target, call: ast.Call) -> Iterator[Replace]:
    for value in [*call.args[:1], *(key.value for key in call.keywords if key.arg == "device_type")]:
        if is_gpu_string(value):
            code = quoted_like(script, value, target.device_type)
            yield Replace(value, code, f"let autocast work on the {target.name} device")


def _renamed_scaler(script: Script, target: Target, call: ast.Call) -> Iterator[Replace]:
    """`torch.cuda.amp.GradScaler(…)`, and torch.amp's, whose first argument is the device, by default a GPU."""
    message = f"scale on the {target.name} device"
    given = [*call.args[:1], *(key.value for key in call.keywords if key.arg == "device")]
    if not script.qualified(call.func).startswith("torch.cuda.") and given:
        if is_gpu_string(given[0]):
            yield Replace(given[0], quoted_like(script, given[0], target.device_type), message)
        return
    words = ["{}"] * len(call.args) + [f"{key.arg}={{}}" if key.arg else "**{}" for key in call.keywords]
    template = f"torch.amp.GradScaler({', '.join([target.device, *words])})"
    parts = (*call.args, *(key.value for key in call.keywords))
    yield Replace(call, template, message, modules=("import torch",), parts=parts)


def _scaler(script: Script, target: Target, call: ast.Call) -> Iterator[Edit | Finding]:
    remedy = "nothing to do: bfloat16 keeps the range of float32"
    yield Finding(RULE.id, "warning", call.lineno, f"GradScaler does nothing on {target.name} devices", remedy)
    message = "switch the scaler off"
    enabled = [keyword.value for keyword in call.keywords if keyword.arg == "enabled"]
    if enabled and source(script, enabled[0]) == "False":
        return
    if enabled:
        yield Replace(enabled[0], "False", message)
    elif not call.args and not call.keywords:
        yield Replace(call, f"{source(script, call.func)}(enabled=False)", message)


RULE = Rule(
    id="DDP112",
    title="Use mixed precision on XLA",
    why="""`torch.cuda.amp` knows GPUs only. XLA devices compute in bfloat16 under `torch.autocast("xla")`; its
range needs no GradScaler (X8).""",
    before="""\
import torch
from torch.cuda.amp import autocast

model = torch.nn.Linear(4, 1).cuda()
optimizer = torch.optim.SGD(model.parameters(), lr=0.1)
for _ in range(10):
    with autocast():
        loss = model(torch.rand(8, 4).cuda()).mean()
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
from torch.cuda.amp import autocast

init_process_group("xla", init_method="xla://")

model = torch.nn.Linear(4, 1).to(torch_xla.device())
model = DistributedDataParallel(model, gradient_as_bucket_view=True)
optimizer = torch.optim.SGD(model.parameters(), lr=0.1)
for _ in range(10):
    with torch.autocast("xla"):
        loss = model(torch.rand(8, 4).to(torch_xla.device())).mean()
    optimizer.zero_grad()
    loss.backward()
    optimizer.step()
    torch_xla.sync()

destroy_process_group()
""",
    check=check,
    target="xla",
)
