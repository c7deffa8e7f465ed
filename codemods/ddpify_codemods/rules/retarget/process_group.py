"""DDP201: a hand-written process group becomes one of XLA."""

from __future__ import annotations

import ast
from collections.abc import Iterator

from ...facts.distribution import joins_process_group
from ...facts.launch import is_before_launch
from ...facts.script import Script
from ...rule import Delete, Edit, Finding, Replace, Rule
from ...targets import Target

_MODULES = ("import torch_xla", "import torch_xla.distributed.xla_backend")
_ADDRESS = {"MASTER_ADDR", "MASTER_PORT"}


def check(script: Script, target: Target) -> Iterator[Edit | Finding]:
    """Rewrite init_process_group, and drop the address of the group, which xla:// finds by itself."""
    for call in script.find(ast.Call):
        if joins_process_group(script, call):
            yield from _joined(script, target, call)
        elif isinstance(script.parents[call], ast.Expr) and _sets_address(script, call.func, call.args[:1]):
            yield Delete(script.statement(call), "the group finds its address by itself")
    for statement in script.find(ast.Assign):
        place = statement.targets[0]
        if isinstance(place, ast.Subscript) and _sets_address(script, place.value, [place.slice]):
            yield Delete(statement, "the group finds its address by itself")


def _joined(script: Script, target: Target, call: ast.Call) -> Iterator[Edit | Finding]:
    if is_before_launch(script, call):
        remedy = 'put what trains into a function, and call that under `if __name__ == "__main__":`'
        message = "the process group is made where the processes of XLA are not started yet"
        yield Finding(RULE.id, "refused", call.lineno, message, remedy)
        return
    yield from _backend(script, call)
    timeout = [keyword.value for keyword in call.keywords if keyword.arg == "timeout"]
    template = f'{{}}("{target.backend}", {target.init_arguments}' + (", timeout={})" if timeout else ")")
    message = "make the process group of XLA: it knows ranks and world size"
    yield Replace(call, template, message, modules=_MODULES, parts=(call.func, *timeout))


def _backend(script: Script, call: ast.Call) -> Iterator[Delete]:
    """Drop `backend = "nccl" if … else "gloo"` where nothing else reads it."""
    given = [*call.args[:1], *(keyword.value for keyword in call.keywords if keyword.arg == "backend")]
    name = given[0].id if given and isinstance(given[0], ast.Name) else ""
    uses = [node for node in script.find(ast.Name) if node.id == name]
    made = [node for node in script.find(ast.Assign) if node.targets[0] in uses]
    if len(uses) == 2 and len(made) == 1 and script.scope(made[0]) is script.scope(call):
        yield Delete(made[0], "XLA has one backend")


def _sets_address(script: Script, owner: ast.expr, names: list[ast.expr]) -> bool:
    known = script.qualified(owner) in ("os.environ", "os.environ.setdefault")
    return known and any(isinstance(name, ast.Constant) and name.value in _ADDRESS for name in names)


RULE = Rule(
    id="DDP201",
    title="Make the process group of XLA",
    why="""\
The first of the changes that PyTorch/XLA's documentation lists for a script that is written for DistributedDataParallel
on nccl or gloo: import the backend and name it. Under `xla://` ranks, world size and the address of the group come from
the XLA runtime. The rules from DDP202 on make the rest of the changes; the result needs nothing of ddpify.""",
    before="""\
import os
import torch
import torch.distributed as dist
import torch.multiprocessing as mp
from torch.nn.parallel import DistributedDataParallel as DDP


def train(rank, world_size):
    os.environ["MASTER_ADDR"] = "localhost"
    os.environ["MASTER_PORT"] = "29500"
    dist.init_process_group("nccl", rank=rank, world_size=world_size)
    model = DDP(torch.nn.Linear(4, 1).to(rank), device_ids=[rank])
    optimizer = torch.optim.SGD(model.parameters(), lr=0.1)
    for _ in range(10):
        optimizer.zero_grad()
        model(torch.rand(8, 4).to(rank)).mean().backward()
        optimizer.step()
    dist.destroy_process_group()


if __name__ == "__main__":
    mp.spawn(train, args=(2,), nprocs=2)
""",
    after="""\
import os
import torch
import torch.distributed as dist
from torch.nn.parallel import DistributedDataParallel as DDP
import torch_xla
import torch_xla.distributed.xla_backend
import torch_xla.runtime as xr


def train(rank):
    world_size = xr.world_size()
    dist.init_process_group("xla", init_method="xla://")
    model = DDP(torch.nn.Linear(4, 1).to(torch_xla.device()), gradient_as_bucket_view=True)
    optimizer = torch.optim.SGD(model.parameters(), lr=0.1)
    for _ in range(10):
        optimizer.zero_grad()
        model(torch.rand(8, 4).to(torch_xla.device())).mean().backward()
        optimizer.step()
        torch_xla.sync()
    dist.destroy_process_group()


if __name__ == "__main__":
    torch_xla.launch(train)
""",
    check=check,
    target="xla",
)
