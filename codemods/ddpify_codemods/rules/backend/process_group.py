"""DDP221: a hand-written process group joins with the backend of another target."""

from __future__ import annotations

import ast
from collections.abc import Iterator

from ...facts.backends import backend_names, backend_of, backends, decided, joins, known_target, options
from ...facts.devices import quoted_like
from ...facts.hand_written import is_collective
from ...facts.header import last_leading_import
from ...facts.launch import spawns
from ...facts.launcher_environment import read_variable, variable_of
from ...facts.script import Script
from ...rule import ChangeArgument, Edit, Finding, Insert, Replace, Rule
from ...targets import Target

_DIST = ("import torch.distributed as dist",)
_ASKS = frozenset({"is_nccl_available", "is_gloo_available", "is_mpi_available", "is_xccl_available"})
_WITHOUT_TENSORS = ("barrier", "_object", "_object_list")


def check(script: Script, target: Target) -> Iterator[Edit | Finding]:
    """Rewrite the backend where it is written, and what goes with it."""
    skipped = decided(script, target)
    for call in joins(script):
        given = backend_of(call)
        if call in skipped:
            continue
        if given is None:
            yield from _by_default(script, target, call)
        elif not _asks_for(script, given, target):
            yield from _named(script, target, given, skipped)
        if not target.is_accelerator and any(word.arg == "device_id" for word in call.keywords):
            yield ChangeArgument(call, "", "", "the CPU has no number", "device_id")
        if target.plain_environment:
            yield from _environment(script, target, call)
    for node in script.find(ast.Attribute):
        word = script.qualified(node).removeprefix("torch.distributed.")
        own = word == f"is_{target.backend}_available" or _is_for_target(script, node, target)
        if word in _ASKS and node not in skipped and not own:
            message = f"ask for {target.backend}, which is used now"
            yield Replace(node, f"{{}}.is_{target.backend}_available", message, parts=(node.value,))


def _is_for_target(script: Script, node: ast.AST, target: Target) -> bool:
    """Whether a question belongs to a choice that the target itself writes."""
    written = ast.unparse(ast.parse(target.plain_backend)) if target.plain_backend else ""
    return any(isinstance(each, ast.IfExp) and ast.unparse(each) == written for each in script.ancestors(node))


def _asks_for(script: Script, given: ast.expr, target: Target) -> bool:
    """Whether the run chooses between the target's backend and another one."""
    return isinstance(given, ast.IfExp) and f"is_{target.backend}_available" in ast.unparse(given.test)


def _named(script: Script, target: Target, given: ast.expr, skipped: frozenset[ast.AST]) -> Iterator[Edit | Finding]:
    names = [name for name in backend_names(script, given) if name not in skipped]
    known = [name for name in names if {part.split(":")[-1] for part in str(name.value).split(",")} <= backends()]
    if not known:
        remedy = f'write init_process_group("{target.backend}")'
        yield Finding(RULE.id, "refused", given.lineno, "the backend of the process group is not known here", remedy)
    for name in known:
        if not _is_right(script, str(name.value), target):
            code = target.plain_backend or quoted_like(script, name, _backend(script, target, str(name.value)))
            modules = (*target.modules, *(_DIST if target.plain_backend else ()))
            yield Replace(name, code, f"join a group of {target.backend}", modules=modules)


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


def _environment(script: Script, target: Target, call: ast.Call) -> Iterator[Edit | Finding]:
    if spawns(script):
        message = f"{target.name} processes are started by its launcher, not by torch.multiprocessing.spawn"
        remedy = "read the rank from the environment instead, as torchrun sets it"
        yield Finding(RULE.id, "refused", call.lineno, message, remedy)
        return
    anchor = last_leading_import(script.tree)
    if anchor is None or any(_writes_rank(script, node) for node in script.nodes):
        return
    reads = any(read_variable(script, node) == "LOCAL_RANK" for node in script.nodes)
    reads = reads or any(options(script, "local_rank"))
    lines = "".join(f"\n{line}" for line in target.plain_environment if reads or '"LOCAL_RANK"' not in line)
    message = "hand torch what this target's launcher sets"
    yield Insert(anchor, lines, message, "after", modules=("import os",), last=True)


def _writes_rank(script: Script, node: ast.AST) -> bool:
    if isinstance(node, ast.Subscript) and isinstance(node.ctx, ast.Store):
        return variable_of(script, node) == "RANK"
    if not isinstance(node, ast.Call) or script.qualified(node.func) != "os.environ.setdefault" or not node.args:
        return False
    return isinstance(node.args[0], ast.Constant) and node.args[0].value == "RANK"


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
