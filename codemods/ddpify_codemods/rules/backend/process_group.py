"""DDP221: a hand-written process group joins with the backend of another target."""

from __future__ import annotations

import ast
from collections.abc import Iterator

from ...facts.backends import (
    backend_names,
    backend_of,
    backends,
    choice_of_target,
    decided,
    is_choice_of,
    joins,
    known_target,
)
from ...facts.devices import quoted_like
from ...facts.hand_written import is_collective
from ...facts.origins import origins
from ...facts.script import Script
from ...rule import ChangeArgument, Edit, Finding, Replace, Rule
from ...targets import Target

_DIST = ("import torch.distributed as dist",)
_ASKS = frozenset({"is_nccl_available", "is_gloo_available", "is_mpi_available", "is_xccl_available"})
_USUAL = "gloo"  # what such a choice falls back to
_WITHOUT_TENSORS = ("barrier", "_object", "_object_list")


def check(script: Script, target: Target) -> Iterator[Edit | Finding]:
    """Rewrite the backend where it is written, and what goes with it."""
    skipped = decided(script, target)
    for call in joins(script):
        given = backend_of(call)
        if call in skipped or _is_for_platform(script, call):
            continue
        if given is None:
            yield from _by_default(script, target, call)
        elif not _asks_for(given, target) and not _asks_torch(script, given, target):
            yield from _named(script, target, given, skipped)
        if not target.is_accelerator and any(word.arg == "device_id" for word in call.keywords):
            yield ChangeArgument(call, "", "", "the CPU has no number", "device_id")
    for node in script.find(ast.Attribute):
        word = script.qualified(node).removeprefix("torch.distributed.")
        if word not in _ASKS or node in skipped or word == f"is_{target.backend}_available":
            continue
        if choice_of_target(script, node) is None:
            message = f"ask for {target.backend}, which is used now"
            yield Replace(node, f"{{}}.is_{target.backend}_available", message, parts=(node.value,))


def _is_for_platform(script: Script, call: ast.Call) -> bool:
    """Whether a call is for one operating system alone: gloo is all that Windows has."""
    return any(isinstance(each, ast.If) and "platform" in ast.unparse(each.test) for each in script.ancestors(call))


def _asks_torch(script: Script, given: ast.expr, target: Target) -> bool:
    """Whether torch is asked in the run for the backend of the device that there is."""
    made = (origin.func for origin in origins(script, given) if isinstance(origin, ast.Call))
    asks = any(script.qualified(each) == "torch.distributed.get_default_backend_for_device" for each in made)
    return asks and not target.plain_backend and not target.modules


def _asks_for(given: ast.expr, target: Target) -> bool:
    """Whether the run chooses between the target's backend and another one."""
    return isinstance(given, ast.IfExp) and f"is_{target.backend}_available" in ast.unparse(given.test)


def _named(script: Script, target: Target, given: ast.expr, skipped: frozenset[ast.AST]) -> Iterator[Edit | Finding]:
    names = [name for name in backend_names(script, given) if name not in skipped]
    known = [name for name in names if {part.split(":")[-1] for part in str(name.value).split(",")} <= backends()]
    if not known:
        remedy = f'write init_process_group("{target.backend}")'
        yield Finding(RULE.id, "refused", given.lineno, "the backend of the process group is not known here", remedy)
    written = dict.fromkeys(choice_of_target(script, name) or name for name in known)
    for place in written:
        if isinstance(place, ast.IfExp):
            right, code = is_choice_of(target, place), f'"{_backend(script, target, _USUAL)}"'
        else:
            right = _is_right(script, str(place.value), target)
            code = quoted_like(script, place, _backend(script, target, str(place.value)))
        if not right:
            modules = (*target.modules, *(_DIST if target.plain_backend else ()))
            yield Replace(place, target.plain_backend or code, f"join a group of {target.backend}", modules=modules)


def _is_right(script: Script, name: str, target: Target) -> bool:
    if ":" in name:
        return f"{target.device_type}:{target.backend}" in name.split(",") and target.is_accelerator
    return name == target.backend


def _backend(script: Script, target: Target, name: str) -> str:
    """The target's backend; beside gloo for tensors of the host, where the script may have sent some over it."""
    sends = any(is_collective(script, call) and not _is_empty(script, call) for call in script.find(ast.Call))
    if target.is_accelerator and (":" in name or (name in _of_host(target) and sends)):
        return f"cpu:gloo,{target.device_type}:{target.backend}"
    return target.backend


def _of_host(target: Target) -> set[str]:
    return {name for name in backends() if (known := known_target(name)) and not known.is_accelerator}


def _is_empty(script: Script, call: ast.Call) -> bool:
    return script.qualified(call.func).endswith(_WITHOUT_TENSORS)


def _by_default(script: Script, target: Target, call: ast.Call) -> Iterator[Edit]:
    """Where no backend is named, torch takes gloo for the CPU and each accelerator's own."""
    if target.plain_backend or target.modules:
        code = target.plain_backend or f'"{target.backend}"'
        modules = (*target.modules, *(_DIST if target.plain_backend else ()))
        yield ChangeArgument(call, "backend", code, f"join a group of {target.backend}", modules=modules)


RULE = Rule(
    id="DDP221",
    title="Join a group of another backend",
    why="""\
A hand-written script names its backend: nccl for NVIDIA's GPUs, gloo for CPUs, xccl or ccl for Intel's GPUs, mpi. For
another target the name changes where it is written: in the call, in a variable, in an option's default. A choice that
the run takes (`"nccl" if torch.cuda.is_available() else "gloo"`) stays. A script that sent tensors of the host over
gloo goes on to do so (`"cpu:gloo,cuda:nccl"`, as torch documents). Launchers that do not set torchrun's variables
(mpirun) get the lines that Intel documents for oneCCL.""",
    before="""\
import os

import torch
import torch.distributed as dist
from torch.nn.parallel import DistributedDataParallel as DDP

dist.init_process_group(backend="nccl")
local_rank = int(os.environ["LOCAL_RANK"])
torch.cuda.set_device(local_rank)
model = DDP(torch.nn.Linear(4, 1).cuda(local_rank), device_ids=[local_rank])
optimizer = torch.optim.SGD(model.parameters(), lr=0.1)
model(torch.rand(8, 4).cuda(local_rank)).mean().backward()
optimizer.step()
""",
    after="""\
import os

import torch
import torch.distributed as dist
from torch.nn.parallel import DistributedDataParallel as DDP

dist.init_process_group(backend="xccl")
local_rank = int(os.environ["LOCAL_RANK"])
torch.xpu.set_device(local_rank)
model = DDP(torch.nn.Linear(4, 1).xpu(local_rank), device_ids=[local_rank])
optimizer = torch.optim.SGD(model.parameters(), lr=0.1)
model(torch.rand(8, 4).xpu(local_rank)).mean().backward()
optimizer.step()
""",
    check=check,
    target="xpu",
)
