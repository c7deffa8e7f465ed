"""DDP646: what Horovod has and torch has not."""

from __future__ import annotations

import ast
from collections.abc import Iterator

from ...facts.devices import inside_f_string
from ...facts.horovod import horovod_name
from ...facts.script import Script
from ...rule import Edit, Finding, Replace, Rule
from ...targets import Target
from .joined import SAID

_BY_OTHERS = frozenset(
    {
        *("DistributedOptimizer", "broadcast_parameters", "broadcast_optimizer_state", "broadcast_", "broadcast"),
        *("allreduce", "allreduce_", "allgather", "allgather_object", "broadcast_object"),
    }
)
_VALUES = frozenset({"Average", "Sum", "Min", "Max", "Product", "Adasum", "Compression.fp16", "Compression.none"})
_ADVICE = {
    "elastic": "take it out, convert, and run `torchrun --nnodes MIN:MAX --max-restarts N` with checkpoints",
    "join": "give all ranks equally many batches, or use torch.distributed.algorithms.Join",
    "Compression": "fp16 and none have a form in torch",
}
_STARTS = "torchrun starts the processes: torchrun --nproc-per-node N -- SCRIPT"


def check(script: Script, target: Target) -> Iterator[Edit | Finding]:
    """Refuse what no other rule moves; a run that the script itself starts ends with what to do."""
    for name in ("dist", "dist_nn", "default_hooks"):
        stores = (each for each in script.find(ast.Name) if each.id == name and isinstance(each.ctx, ast.Store))
        for store in stores:
            message = f"`{name}` is a variable here, and is to be a module of torch's"
            yield Finding(RULE.id, "refused", store.lineno, message, "give the variable another name")
    for node in script.nodes:
        name = horovod_name(script, node)
        parent = script.parents.get(node)
        if not name or name == "torch" or (isinstance(parent, ast.Attribute) and name != "torch" and _is_prefix(name)):
            continue
        if isinstance(node, ast.Name) and node.id not in script.imported:
            continue
        if name == "run" and isinstance(parent, ast.Call) and isinstance(script.parents[parent], ast.Expr):
            yield Replace(parent, f'sys.exit("{_STARTS}")', "torchrun starts the processes", modules=("import sys",))
        elif name == "SyncBatchNorm":
            yield Replace(node, "torch.nn.SyncBatchNorm", "take the statistics of all ranks", modules=("import torch",))  # type: ignore[arg-type]
        elif not _is_moved(script, node, name, parent):
            remedy = next((words for start, words in _ADVICE.items() if name.startswith(start)), "take it out first")
            message = f"hvd.{name} has no form in torch that is known here"
            yield Finding(RULE.id, "refused", getattr(node, "lineno", 1), message, remedy)


def _is_prefix(name: str) -> bool:
    return name in ("Compression", "elastic", "torch")


def _is_moved(script: Script, node: ast.AST, name: str, parent: ast.AST | None) -> bool:
    if name in _VALUES:
        return True
    called = isinstance(parent, ast.Call) and parent.func is node
    if not called:
        return False
    if inside_f_string(script, node) and name not in SAID:
        return False
    bare = isinstance(parent, ast.Call) and not parent.args and not parent.keywords
    return (name in SAID and bare) or name in _BY_OTHERS


RULE = Rule(
    id="DDP646",
    title="What only Horovod has",
    why="""\
Elastic state, process sets, uneven inputs (hvd.join), asynchronous and grouped collectives have no form in torch that
does the same, or one that only a person can choose. They are refused with their line. `horovod.run(…)` starts processes
from a script, for which torch has torchrun: where a script comes to it, the run ends and says so.""",
    before="""\
import horovod.torch as hvd
import torch

hvd.init()
model = torch.nn.Linear(4, 1)
optimizer = torch.optim.SGD(model.parameters(), lr=0.1)
optimizer = hvd.DistributedOptimizer(optimizer, named_parameters=model.named_parameters())
state = hvd.elastic.TorchState(model=model, optimizer=optimizer)
for _ in range(10):
    optimizer.zero_grad()
    model(torch.rand(8, 4)).mean().backward()
    optimizer.step()
    state.commit()
""",
    after="",
    check=check,
    target="cpu",
)
