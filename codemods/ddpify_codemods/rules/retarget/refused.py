"""DDP209: what has no form in the process group of XLA is refused, by name and line."""

from __future__ import annotations

import ast
from collections.abc import Iterator

from ...facts.distribution import joins_process_group
from ...facts.eager import is_wrapper_call
from ...facts.header import main_guard
from ...facts.launch import is_before_launch, spawns
from ...facts.launcher_environment import of_other_launcher
from ...facts.leftovers import chooses_gpu, idle_assignments
from ...facts.script import Script
from ...rule import Delete, Edit, Finding, Rule
from ...targets import Target

_GROUP = frozenset(
    f"torch.distributed.{name}"
    for name in (
        "all_gather",
        "all_gather_into_tensor",
        "all_reduce",
        "barrier",
        "broadcast",
        "destroy_process_group",
        "elastic.multiprocessing.errors.record",
        "get_rank",
        "get_world_size",
        "init_process_group",
        "is_available",
        "is_initialized",
        "monitored_barrier",
        "reduce",
        "ReduceOp",
        "ReduceOp.MAX",
        "ReduceOp.MIN",
        "ReduceOp.PRODUCT",
        "ReduceOp.SUM",
    )
)
_PROCESSES = frozenset(
    f"torch.multiprocessing.{name}"
    for name in ("spawn", "set_start_method", "set_sharing_strategy", "freeze_support", "cpu_count")
)
_GPU = ("is_available", "manual_seed", "manual_seed_all", "set_device", "synchronize", "empty_cache", "device_count")
_FOREIGN = ("horovod.", "apex.", "smdistributed.", "oneccl_bindings_for_pytorch.", "torch_ccl.", "torchelastic.")
_SINGLE = ("torch.nn.DataParallel", "torch.nn.SyncBatchNorm", "torch.compile", "torch.jit.", "torch.cuda.graphs.")
_METHODS = frozenset({"register_comm_hook", "share_memory", "share_memory_"})


def check(script: Script, target: Target) -> Iterator[Edit | Finding]:
    """Refuse what the other rules cannot move to XLA; drop what only chose GPUs."""
    idle = {statement: set(ast.walk(statement)) for statement in idle_assignments(script)}
    yield from (Delete(statement, "XLA has one device a process") for statement in idle)
    gone = {node for nodes in idle.values() for node in nodes}
    joins = [call for call in script.find(ast.Call) if joins_process_group(script, call)]
    if script.is_entry and joins and not spawns(script) and main_guard(script.tree) is None:
        remedy = 'put what trains into a function, and call that under `if __name__ == "__main__":`'
        yield Finding(RULE.id, "refused", 1, "every process of XLA imports this file, which would start it all", remedy)
    yield from _batch_norms(script)
    early = any(is_before_launch(script, call) for call in joins)  # which DDP201 refuses, and with it what follows
    for node in script.nodes:
        reason = _reason(script, node) if node not in gone else ""
        if not reason and not early and isinstance(node, ast.Call) and node not in gone:
            reason = _reason_of_place(script, node)
        if reason:
            yield _refused(node, reason, "take it out, or train with --target cuda or cpu from the one-process form")


def _batch_norms(script: Script) -> Iterator[Finding]:
    layers = (node for node in script.find(ast.Attribute) if script.qualified(node).startswith("torch.nn.BatchNorm"))
    first = min((node.lineno for node in layers), default=0)
    if first:
        message = "torch_xla 2.9 keeps the biased variance of a batch in running_var: (n - 1) / n of torch's"
        yield Finding(RULE.id, "note", first, message, "nothing to do for training; evaluation differs a little")


def _refused(node: ast.AST, message: str, remedy: str) -> Finding:
    return Finding(RULE.id, "refused", getattr(node, "lineno", 1), message, remedy)


def _reason(script: Script, node: ast.AST) -> str:
    """Why a node cannot be moved to XLA; "" for what can."""
    if isinstance(node, ast.ClassDef) and _sends_gradients(script, node):
        return f"{node.name} communicates in a backward pass, where threads of XLA have no process group"
    if isinstance(node, ast.Attribute) and node.attr in _METHODS:
        return f"{node.attr} has no form under XLA"
    if isinstance(node, ast.keyword):
        return f"{node.arg}: groups of some of the processes are not converted" if _is_group(script, node) else ""
    if isinstance(node, ast.Constant):
        other = of_other_launcher(node)
        return f"{other}: the processes of XLA are not started by srun or mpirun" if other else ""
    if not isinstance(node, (ast.Attribute, ast.Name)) or isinstance(script.parents[node], ast.Attribute):
        return ""
    name = script.qualified(node)
    known = name in _GROUP or name in _PROCESSES
    if name.startswith(("torch.distributed.", "torch.multiprocessing.", *_FOREIGN, *_SINGLE)) and not known:
        return f"{name} has no form under XLA"
    if name.startswith("torch.cuda.") and _needs_gpu(name) and not _chooses_gpu(script, node):
        return f"{name} needs a GPU"
    return ""


def _reason_of_place(script: Script, call: ast.Call) -> str:
    used = is_before_launch(script, call) and _uses_device(script, call)
    return f"{ast.unparse(call.func)} is used where the processes of XLA are not started yet" if used else ""


def _sends_gradients(script: Script, node: ast.ClassDef) -> bool:
    """Whether a class is a function of autograd that communicates."""
    if not any(script.qualified(base) == "torch.autograd.Function" for base in node.bases):
        return False
    calls = (each for each in ast.walk(node) if isinstance(each, ast.Call))
    return any(script.qualified(call.func).startswith("torch.distributed.") for call in calls)


def _uses_device(script: Script, call: ast.Call) -> bool:
    """Whether a call puts something on a device, or needs the other processes."""
    name = script.qualified(call.func)
    if name == "torch.device":
        return bool(call.args) and not (isinstance(call.args[0], ast.Constant) and call.args[0].value == "cpu")
    communicates = name.startswith("torch.distributed.") and not name.endswith(("available", "init_process_group"))
    gpu = isinstance(call.func, ast.Attribute) and call.func.attr == "cuda"
    return communicates or gpu or is_wrapper_call(script, call)


def _needs_gpu(name: str) -> bool:
    word = name.removeprefix("torch.cuda.")
    return not word.startswith(("amp", *_GPU)) and not word.endswith("Tensor")


def _chooses_gpu(script: Script, node: ast.AST) -> bool:
    """Whether a call only says which GPU a process has, where that goes: `device_ids=[torch.cuda.current_device()]`."""
    call = script.parents[node]
    return isinstance(call, ast.Call) and call.func is node and chooses_gpu(script, call)


def _is_group(script: Script, keyword: ast.keyword) -> bool:
    call = script.parents[keyword]
    if keyword.arg not in ("group", "process_group") or not isinstance(call, ast.Call):
        return False
    given = not (isinstance(keyword.value, ast.Constant) and keyword.value.value is None)
    return given and script.qualified(call.func).startswith(("torch.distributed.", "torch.nn.parallel."))


RULE = Rule(
    id="DDP209",
    title="What XLA's process group cannot do is refused",
    why="""\
FSDP, RPC, groups of some of the processes, sending to one process, objects instead of tensors, communication hooks,
SyncBatchNorm and calls that need a GPU have no form in torch_xla's process group, or none that was tried. Neither have
processes that srun or mpirun started.""",
    before="""\
import torch
import torch.distributed as dist
from torch.nn.parallel import DistributedDataParallel as DDP


def main():
    dist.init_process_group("nccl")
    model = DDP(torch.nn.Linear(4, 1).cuda(), process_group=dist.new_group([0, 1]))
    optimizer = torch.optim.SGD(model.parameters(), lr=0.1)
    model(torch.rand(8, 4).cuda()).mean().backward()
    optimizer.step()


if __name__ == "__main__":
    main()
""",
    after="",
    check=check,
    target="xla",
)
