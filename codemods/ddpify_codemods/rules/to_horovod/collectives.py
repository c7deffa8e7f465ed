"""DDP653: torch's collectives in Horovod's words, and what has none."""

from __future__ import annotations

import ast
from collections.abc import Iterator

from ...facts.devices import inside_f_string
from ...facts.distribution import joins_process_group
from ...facts.script import Script
from ...rule import Edit, Finding, Replace, Rule
from ...targets import Target
from .joined import SAID

_OPERATIONS = {"SUM": "Sum", "AVG": "Average", "MIN": "Min", "MAX": "Max", "PRODUCT": "Product"}
_REMEDY = "write dist.all_reduce(x) or dist.broadcast(x, 0) in a line of its own, or take it out"


def check(script: Script, target: Target) -> Iterator[Edit | Finding]:
    """Replace reductions and broadcasts in place, and refuse what else there is of torch.distributed."""
    moved: set[ast.AST] = set()
    for call in script.find(ast.Call):
        if joins_process_group(script, call):
            moved.update(ast.walk(call.func))
        template = _template(script, call)
        if template and call.args and isinstance(script.parents[call], ast.Expr):
            moved.update(part for part in ast.walk(call) if part is not call.args[0])
            yield Replace(call, template, "ask Horovod", modules=target.words.imports, parts=tuple(call.args[:1]))
        elif script.qualified(call.func) in SAID and not call.args and not call.keywords:
            moved.update(ast.walk(call.func))
    for node in script.nodes:
        name = script.qualified(node) if isinstance(node, ast.Attribute | ast.Name) else ""
        whole = not isinstance(script.parents.get(node), ast.Attribute)
        if name.startswith("torch.distributed.") and whole and node not in moved:
            line, message = getattr(node, "lineno", 1), f"{name} has no form in Horovod that is known here"
            yield Finding(RULE.id, "refused", line, message, _REMEDY)


def _template(script: Script, call: ast.Call) -> str:
    """What an all_reduce or a broadcast of the tensor `{}` becomes; "" for anything else."""
    name = script.qualified(call.func)
    if inside_f_string(script, call) or len(call.args) > 2 or any(word.arg is None for word in call.keywords):
        return ""
    words = {str(word.arg): word.value for word in call.keywords}
    second = call.args[1] if len(call.args) == 2 else None
    if name == "torch.distributed.all_reduce" and set(words) <= {"op"}:
        operation = second or words.get("op")
        kind = "SUM" if operation is None else script.qualified(operation).rpartition(".")[2]
        return f"hvd.allreduce_({{}}, op=hvd.{_OPERATIONS[kind]})" if kind in _OPERATIONS else ""
    if name == "torch.distributed.broadcast" and set(words) <= {"src"}:
        root = second or words.get("src")
        return "" if not isinstance(root, ast.Constant) else f"hvd.broadcast_({{}}, root_rank={ast.unparse(root)})"
    return ""


RULE = Rule(
    id="DDP653",
    title="Reduce and broadcast with Horovod",
    why="""\
torch's all_reduce and broadcast change their tensor, as hvd.allreduce_ and hvd.broadcast_ do; the operation is always
said, for Horovod averages where torch sums. What else there is of torch.distributed (groups, handles, objects, other
collectives) has no form in Horovod that is known here, and is refused.""",
    before="""\
import torch
import torch.distributed as dist
from torch.nn.parallel import DistributedDataParallel as DDP

dist.init_process_group("gloo")
model = DDP(torch.nn.Linear(4, 1))
optimizer = torch.optim.SGD(model.parameters(), lr=0.1)
for _ in range(10):
    optimizer.zero_grad()
    loss = model(torch.rand(8, 4)).mean()
    loss.backward()
    optimizer.step()
total = loss.detach()
dist.all_reduce(total)
dist.broadcast(total, src=0)
print(f"{dist.get_rank()}: {total / dist.get_world_size()}")
""",
    after="""\
import horovod.torch as hvd
import torch

hvd.init()
model = torch.nn.Linear(4, 1)
hvd.broadcast_parameters(model.state_dict(), root_rank=0)
optimizer = torch.optim.SGD(model.parameters(), lr=0.1)
optimizer = hvd.DistributedOptimizer(optimizer, named_parameters=model.named_parameters())
for _ in range(10):
    optimizer.zero_grad()
    loss = model(torch.rand(8, 4)).mean()
    loss.backward()
    optimizer.step()
total = loss.detach()
hvd.allreduce_(total, op=hvd.Sum)
hvd.broadcast_(total, root_rank=0)
print(f"{hvd.rank()}: {total / hvd.size()}")
""",
    check=check,
    target="horovod",
)
