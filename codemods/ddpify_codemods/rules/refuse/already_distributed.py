"""DDP302: what is already distributed is not distributed again."""

from __future__ import annotations

import ast
from collections.abc import Iterator

from ...facts.header import option_around
from ...facts.no_group import asks_for_group, never_run
from ...facts.script import Script
from ...rule import Edit, Finding, Replace, Rule
from ...targets import Target

_PREFIXES = (
    "torch.distributed.",
    "horovod.",
    "torch_xla.",
    "torchelastic.",
    "apex.parallel.",
    "smdistributed.",
    "oneccl_bindings_for_pytorch.",
    "torch_ccl.",
    "mpi4py.",
    "byteps.",
    "bagua.",
)
# What of torch.distributed divides by itself, beside its functions init_process_group, init_device_mesh and the like.
_GROUPS = tuple(
    f"torch.distributed.{name}."
    for name in ("rpc", "optim", "fsdp", "_composable", "device_mesh", "tensor", "_tensor", "pipeline", "pipelining")
)
_NAMES = frozenset(
    {
        "torch.nn.parallel.DistributedDataParallel",
        "torch.nn.parallel.distributed.DistributedDataParallel",
        "torch.utils.data.DistributedSampler",
        "torch.utils.data.distributed.DistributedSampler",
        "torch.multiprocessing.spawn",
        "torch.multiprocessing.Process",
        "torch.multiprocessing.Pool",
    }
)


# One process has nothing to synchronise; that several have is the runtime's business.
_SYNCHRONISED_BATCH_NORM = frozenset({"apex.parallel.convert_syncbn_model", "apex.parallel.SyncBatchNorm"})
_SHARES = ("share_memory", "share_memory_")


def check(script: Script, target: Target) -> Iterator[Edit | Finding]:
    """Refuse a script that uses several processes or devices of its own accord; one that only asks keeps its answer."""
    uses = list(_uses(script))
    optional = [(node, option) for node, name in uses if (option := _unneeded(script, node, name)) is not None]
    for node, option in optional:
        yield _without(script, node, ast.unparse(option), target)
    found = [use for use in uses if use[0] not in [node for node, _ in optional]]
    divided = [(node, name) for node, name in found if _divides(name)]
    for node, name in (divided or found)[:1]:
        message = f"it uses {name}: this script already works with several processes"
        yield Finding(RULE.id, "refused", node.lineno, message, _remedy(name), distributed=bool(divided))
    if script.only_asks_for_group and not found:
        asked = [call for call in script.find(ast.Call) if asks_for_group(script, call)]
        yield from (_answered(script, call) for call in asked)
        if asked and script.never_used:
            others = ", ".join(sorted(script.never_used))
            message = f"programs that join a process group by this file ({others}) get this answer, too"
            yield Finding(RULE.id, "warning", asked[0].lineno, message, "give them a copy of the file")


def _uses(script: Script) -> Iterator[tuple[ast.expr, str]]:
    dead = never_run(script)
    for node in script.find(ast.Attribute, ast.Name):
        distributes = _is_distributed(script.qualified(node))
        shared = node.attr if isinstance(node, ast.Attribute) and node.attr in _SHARES else ""
        if not (distributes or shared) or node in dead or _is_asked_after(script, node):
            continue
        if not distributes:
            yield node, shared
        elif not (script.only_asks_for_group and _only_asks(script, node)):
            yield node, script.qualified(node)


def _is_asked_after(script: Script, node: ast.AST) -> bool:
    """`isinstance(model, DistributedDataParallel)`, `type(model) in (…)`: a question makes no such model."""
    parent = script.parents.get(node)
    if isinstance(parent, ast.Tuple):
        node, parent = parent, script.parents.get(parent)
    if isinstance(parent, ast.Compare):
        return True
    if not isinstance(parent, ast.Call) or not isinstance(parent.func, ast.Name):
        return False
    return parent.func.id == "isinstance" and node in parent.args[1:]


def _unneeded(script: Script, node: ast.AST, name: str) -> ast.expr | None:
    """The option that asks for apex's synchronised BatchNorm; None where a script cannot go without it."""
    return option_around(script, node) if name in _SYNCHRONISED_BATCH_NORM else None


def _without(script: Script, node: ast.expr, option: str, target: Target) -> Finding:
    """Say that an option for synchronised BatchNorm can be left off, and what does the same."""
    plain = script.program
    if plain is None or (plain.sync_batchnorm and target.synchronizes_batch_norm):
        message, remedy = "BatchNorm takes the statistics of the whole batch already", f"leave `{option}` off"
    elif target.synchronizes_batch_norm:
        message = f"with `{option}`, apex takes BatchNorm's statistics from the batch of all ranks"
        remedy = "leave it off, and convert with --sync-batchnorm: torch does so itself"
    else:
        message = "on this target BatchNorm takes its statistics from the batch of each rank"
        remedy = f"leave `{option}` off; --style exact takes those of the whole batch"
    return Finding(RULE.id, "note", node.lineno, message, remedy)


def _only_asks(script: Script, node: ast.AST) -> bool:
    is_call = asks_for_group(script, script.parents[node]) and node is script.parents[node].func  # type: ignore[attr-defined]
    return is_call or script.qualified(node) == "torch.distributed.is_available"


def _answered(script: Script, call: ast.Call) -> Replace:
    """The script never joins a process group: that the runtime does must not change what it does."""
    parent = script.parents[call]
    message = "the script joins no process group itself: keep its answer"
    if isinstance(parent, ast.UnaryOp) and isinstance(parent.op, ast.Not):
        return Replace(parent, "True", message)
    return Replace(call, "False", message)


def _divides(name: str) -> bool:
    """Whether a program that uses it is divided: not by processes of another purpose, nor by what a helper may hold for
    programs that join a group, such as a collective or the question for a rank."""
    if name.startswith("torch.distributed."):
        return name.startswith(_GROUPS) or name.rpartition(".")[2].startswith("init_")
    return _is_distributed(name) and not name.startswith("torch.multiprocessing.")


def _remedy(name: str) -> str:
    if name.startswith("torch_xla."):
        return "it is XLA code: convert its one-process form for other targets"
    if name == "torch.distributed.init_process_group":
        return "start it as its author meant it; another --target moves it there"
    starts = "start it by horovodrun" if name.startswith("horovod.") else "start it as its author meant it"
    return f"{starts}, or convert its one-process form"


def _is_distributed(name: str) -> bool:
    return name in _NAMES or name.startswith(_PREFIXES)


RULE = Rule(
    id="DDP302",
    title="Distributed scripts stay as they are",
    why="""\
A script that calls torch.distributed, Horovod or torch_xla, or starts processes that share a model (hogwild), has its
own division of the data and its own reduction. Both would happen twice (section R). A script of DistributedDataParallel
for another target is moved instead (to XLA by DDP201 and the rules after it, to other backends by DDP221 and the rules
after it, to Horovod by DDP651), one of Horovod by DDP641 and the rules after it, and XLA code is left as it is. Helpers
that join a process group, and that a program imports but never calls, do not count.""",
    before="""\
import torch
import torch.distributed as dist

dist.init_process_group("nccl")
model = torch.nn.Linear(2, 1).cuda()
optimizer = torch.optim.SGD(model.parameters(), lr=0.1)
model(torch.ones(4, 2).cuda()).mean().backward()
optimizer.step()
""",
    after="",
    check=check,
)
