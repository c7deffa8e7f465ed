"""DDP225: what a hand-written script trains on the CPU, it trains on accelerators."""

from __future__ import annotations

import ast
from collections.abc import Iterator

from ...facts.backends import joins
from ...facts.eager import cpu_devices, is_loader, is_made_on_host, is_moved_before, is_wrapper_call
from ...facts.origins import origins
from ...facts.script import Script
from ...facts.started import starts_of_group
from ...rule import Edit, Finding, Insert, Replace, Rule
from ...targets import Target
from ..retarget.data import moved_to_cpu, values_for_models


def check(script: Script, target: Target) -> Iterator[Edit | Finding]:
    """Take a device, and move the model and what meets it."""
    if not target.module:
        return
    move = f'.to("{target.device_type}")'
    for call in joins(script):
        yield from _device_taken(script, target, call)
    moved = dict.fromkeys(cpu_devices(script))
    for node in moved:
        named = node.args[0] if isinstance(node, ast.Call) else node
        yield Replace(named, f'"{target.device_type}"', f"train on the {target.name} device")
    on_host = moved_to_cpu(script)
    for call in on_host:
        parts = (call.func.value,)  # type: ignore[attr-defined]
        yield Replace(call, f"{{}}{move}", f"train on the {target.name} device", parts=parts)
    if moved:
        return  # the script moves what meets its model itself
    message = f"move it to the {target.name} device"
    for call in script.find(ast.Call):
        if not is_wrapper_call(script, call) or not call.args:
            continue
        on_its_way = any(each in on_host for each in origins(script, call.args[0]))
        if not on_its_way and not is_moved_before(script, call.args[0], call.lineno):
            yield Replace(call.args[0], f"{{}}{move}", message)
    yield from _data(script, move, message, {*on_host})


def _device_taken(script: Script, target: Target, call: ast.Call) -> Iterator[Edit]:
    message = f"take the {target.name} device of this process"
    if starts_of_group(script):
        code = f"{target.module}.set_device({_owner(call)}.get_rank() % {target.module}.device_count())"
        if _owner(call) != "torch.distributed":
            yield Insert(script.statement(call), code, message, "after", modules=("import torch",))
            return
        code = code.replace("torch.distributed.", "dist.")
        modules = ("import torch", "import torch.distributed as dist")
        yield Insert(script.statement(call), code, message, "after", modules=modules)
        return
    code = f'{target.module}.set_device(int(os.environ["LOCAL_RANK"]))'
    yield Insert(script.statement(call), code, message, modules=("import os", "import torch"), above=True)


def _owner(call: ast.Call) -> str:
    return ast.unparse(call.func.value) if isinstance(call.func, ast.Attribute) else "torch.distributed"


def _data(script: Script, move: str, message: str, moved: set[ast.Call]) -> Iterator[Edit | Finding]:
    """Move tensors where they are made, and batches at the begin of the loop over their loader."""
    done: set[ast.AST] = set()
    loops: dict[ast.For, set[str]] = {}
    for value in values_for_models(script):
        made = list(origins(script, value))
        for origin in () if moved.intersection(made) else made:
            loop = _loop(script, origin)
            if isinstance(value, ast.Name) and loop is not None and value.id in _names(loop.target):
                loops.setdefault(loop, set()).add(value.id)
            elif origin not in done and isinstance(origin, ast.expr) and is_made_on_host(script, origin):
                done.add(origin)
                yield Replace(origin, f"{{}}{move}", message)
    for loop, names in loops.items():
        ordered = [name for name in _names(loop.target) if name in names]
        code = f"{', '.join(ordered)} = {', '.join(f'{name}{move}' for name in ordered)}"
        yield Insert(loop.body[0], code, message)


def _loop(script: Script, node: ast.expr) -> ast.For | None:
    """The loop whose head names a loader, for the loader; None for anything else."""
    if not isinstance(node, ast.Name | ast.Attribute | ast.Call) or not is_loader(script, node):
        return None
    for parent in script.ancestors(node):
        if isinstance(parent, ast.For):
            return parent if any(part is node for part in ast.walk(parent.iter)) else None
        if isinstance(parent, ast.stmt):
            return None
    return None


def _names(target: ast.expr) -> list[str]:
    return [node.id for node in ast.walk(target) if isinstance(node, ast.Name)]


RULE = Rule(
    id="DDP225",
    title="Train on accelerators what trained on the CPU",
    why="""\
A script over gloo that names no device gets one: each process takes the one of its local rank, and the model, the
batches and the tensors that meet them are moved there. What is not found fails at the first step: torch does not mix
devices.""",
    before="""\
import torch
import torch.distributed as dist
from torch.nn.parallel import DistributedDataParallel as DDP
from torch.utils.data import DataLoader, DistributedSampler, TensorDataset

dist.init_process_group("gloo")
data = TensorDataset(torch.rand(64, 4), torch.rand(64, 1))
loader = DataLoader(data, batch_size=8, sampler=DistributedSampler(data))
model = DDP(torch.nn.Linear(4, 1))
optimizer = torch.optim.SGD(model.parameters(), lr=0.1)
for epoch in range(2):
    loader.sampler.set_epoch(epoch)
    for x, y in loader:
        optimizer.zero_grad()
        torch.nn.functional.mse_loss(model(x), y).backward()
        optimizer.step()
""",
    after="""\
import os

import torch
import torch.distributed as dist
from torch.nn.parallel import DistributedDataParallel as DDP
from torch.utils.data import DataLoader, DistributedSampler, TensorDataset

torch.cuda.set_device(int(os.environ["LOCAL_RANK"]))
dist.init_process_group("nccl")
data = TensorDataset(torch.rand(64, 4), torch.rand(64, 1))
loader = DataLoader(data, batch_size=8, sampler=DistributedSampler(data))
model = DDP(torch.nn.Linear(4, 1).to("cuda"))
optimizer = torch.optim.SGD(model.parameters(), lr=0.1)
for epoch in range(2):
    loader.sampler.set_epoch(epoch)
    for x, y in loader:
        x, y = x.to("cuda"), y.to("cuda")
        optimizer.zero_grad()
        torch.nn.functional.mse_loss(model(x), y).backward()
        optimizer.step()
""",
    check=check,
    target="cuda",
)
