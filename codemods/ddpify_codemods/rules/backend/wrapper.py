"""DDP223: DistributedDataParallel is given what the CPU has, and nothing that needs a GPU."""

from __future__ import annotations

import ast
from collections.abc import Iterator

from ...facts.backends import decided
from ...facts.eager import is_wrapper_call
from ...facts.header import option_around
from ...facts.script import Script
from ...rule import ChangeArgument, Edit, Finding, Replace, Rule
from ...targets import Target

_POSITIONS = ("module", "device_ids", "output_device", "dim", "broadcast_buffers")
_NUMBERS = ("device_ids", "output_device")
_SYNCHRONIZED = "torch.nn.SyncBatchNorm"
_NOT_BY_BACKEND = ("torch.distributed.rpc.", "torch.distributed.pipelining.", "torch.distributed.fsdp.")


def check(script: Script, target: Target) -> Iterator[Edit | Finding]:
    """Drop the numbers of GPUs, and refuse what only GPUs have."""
    skipped = decided(script, target)
    for node in script.find(ast.Call, ast.Attribute, ast.Name):
        if node in skipped:
            continue
        if isinstance(node, ast.Call):
            if not target.is_accelerator and is_wrapper_call(script, node):
                yield from _without_numbers(node, skipped)
        elif not isinstance(script.parents[node], ast.Attribute):
            yield from _refused(script, target, node)


def _without_numbers(call: ast.Call, skipped: frozenset[ast.AST]) -> Iterator[Edit]:
    message = "the CPU has no number"
    places = dict(zip(_POSITIONS, call.args, strict=False))
    if any(name in places and not _is_none(places[name], skipped) for name in _NUMBERS):
        kept = {name: value for name, value in places.items() if name not in _NUMBERS}
        words = ["{}" if name == "module" else f"{name}={{}}" for name in kept]
        others = [word for word in call.keywords if word.arg not in _NUMBERS]
        words += [f"{word.arg}={{}}" if word.arg else "**{}" for word in others]
        parts = (call.func, *kept.values(), *(word.value for word in others))
        yield Replace(call, f"{{}}({', '.join(words)})", message, parts=parts)
        return
    for word in call.keywords:
        if word.arg in _NUMBERS and not _is_none(word.value, skipped):
            yield ChangeArgument(call, "", "", message, word.arg)


def _is_none(value: ast.expr, skipped: frozenset[ast.AST]) -> bool:
    """Whether an argument is None, at least where there is no GPU."""
    if isinstance(value, ast.IfExp):
        live = [part for part in (value.body, value.orelse) if part not in skipped]
        return all(_is_none(part, skipped) for part in live)
    return isinstance(value, ast.Constant) and value.value is None


def _refused(script: Script, target: Target, node: ast.Attribute | ast.Name) -> Iterator[Finding]:
    name = script.qualified(node)
    if name.startswith(_SYNCHRONIZED) and not target.synchronizes_batch_norm and isinstance(node.ctx, ast.Load):
        option, message = option_around(script, node), f"torch has no SyncBatchNorm for the {target.name} target"
        if option is not None:
            yield Finding(RULE.id, "note", node.lineno, message, f"leave `{ast.unparse(option)}` off")
        else:
            remedy = "without it BatchNorm takes the statistics of each rank's rows: take it out if that will do"
            yield Finding(RULE.id, "refused", node.lineno, message, remedy)
    elif name.startswith(_NOT_BY_BACKEND):
        message = f"{name} is more than DistributedDataParallel, and is not moved to another backend"
        yield Finding(RULE.id, "refused", node.lineno, message, "start it as its author meant it")


RULE = Rule(
    id="DDP223",
    title="Wrap the model without the numbers of GPUs",
    why="""\
A model on the CPU takes no `device_ids` and no `output_device`: torch raises. SyncBatchNorm is for GPUs alone;
without it the statistics of a batch would be those of each rank's rows, which trains something else, so a script that
always uses it is refused.""",
    before="""\
import os

import torch
import torch.distributed as dist

local_rank = int(os.environ["LOCAL_RANK"])
dist.init_process_group("nccl")
model = torch.nn.Linear(4, 1).to(local_rank)
model = torch.nn.parallel.DistributedDataParallel(
    model,
    device_ids=[local_rank],
    output_device=local_rank,
    find_unused_parameters=True,
)
optimizer = torch.optim.SGD(model.parameters(), lr=0.1)
model(torch.rand(8, 4, device=local_rank)).mean().backward()
optimizer.step()
""",
    after="""\
import os

import torch
import torch.distributed as dist

local_rank = int(os.environ["LOCAL_RANK"])
dist.init_process_group("gloo")
model = torch.nn.Linear(4, 1).to("cpu")
model = torch.nn.parallel.DistributedDataParallel(
    model,
    find_unused_parameters=True,
)
optimizer = torch.optim.SGD(model.parameters(), lr=0.1)
model(torch.rand(8, 4, device="cpu")).mean().backward()
optimizer.step()
""",
    check=check,
    target="cpu",
)
