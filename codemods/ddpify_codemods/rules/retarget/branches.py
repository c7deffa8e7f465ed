"""DDP207: processes wait for each other, and what only some of them run comes after a step boundary."""

from __future__ import annotations

import ast
from collections.abc import Iterator

from ...facts.distributed import may_depend_on_rank
from ...facts.recording import has_recorded, reads_values
from ...facts.script import Script
from ...rule import Edit, Finding, Insert, Replace, Rule
from ...targets import Target

_BARRIERS = ("torch.distributed.barrier", "torch.distributed.monitored_barrier")
_MODEL = ("import torch_xla.core.xla_model as xm",)
_XLA = ("import torch_xla",)


def check(script: Script, target: Target) -> Iterator[Edit | Finding]:
    """Replace barriers, and insert torch_xla.sync() before branches on the rank that read values."""
    for call in script.find(ast.Call):
        if script.qualified(call.func) in _BARRIERS:
            message = "meet the other processes: the barrier of XLA's process group waits for nobody"
            yield Replace(call, 'xm.rendezvous("barrier")', message, modules=_MODEL)
    parting: dict[ast.If, None] = {}
    for branch in script.find(ast.If):
        if may_depend_on_rank(script, branch.test) and reads_values(script, [*branch.body, *branch.orelse]):
            parting[_first(script, branch)] = None
    for branch in parting:
        if has_recorded(script, branch):
            message = "run what was recorded before some processes go their own way"
            yield Insert(branch, "torch_xla.sync()", message, modules=_XLA)


def _first(script: Script, branch: ast.If) -> ast.If:
    """The `if` that an `elif` belongs to."""
    parent = script.parents[branch]
    return _first(script, parent) if isinstance(parent, ast.If) and parent.orelse == [branch] else branch


RULE = Rule(
    id="DDP207",
    title="Keep the processes of XLA in step",
    why="""\
On XLA a process runs what it has recorded when a value is read. If only rank 0 reads one, to print or to save it,
rank 0 alone runs the collectives that are recorded, and waits for ever for the others (X6): so all ranks run them
before the branch. `dist.barrier()` does nothing in the process group of torch_xla 2.9; `xm.rendezvous` waits.""",
    before="""\
import torch
import torch.distributed as dist
from torch.nn.parallel import DistributedDataParallel as DDP


def main():
    dist.init_process_group("nccl")
    rank = dist.get_rank()
    model = DDP(torch.nn.Linear(4, 1).to(rank), device_ids=[rank])
    if rank == 0:
        print(model.module.weight)
    dist.barrier()
    optimizer = torch.optim.SGD(model.parameters(), lr=0.1)
    for step in range(10):
        optimizer.zero_grad()
        loss = model(torch.rand(8, 4).to(rank)).mean()
        loss.backward()
        optimizer.step()
        total = loss.detach()
        dist.all_reduce(total)
        if rank == 0:
            print(step, total.item())


if __name__ == "__main__":
    main()
""",
    after="""\
import torch
import torch.distributed as dist
import torch_xla
import torch_xla.core.xla_model as xm
import torch_xla.distributed.xla_backend
from torch.nn.parallel import DistributedDataParallel as DDP


def main(index):
    dist.init_process_group("xla", init_method="xla://")
    rank = dist.get_rank()
    model = DDP(torch.nn.Linear(4, 1).to(torch_xla.device()), gradient_as_bucket_view=True)
    torch_xla.sync()
    if rank == 0:
        print(model.module.weight)
    xm.rendezvous("barrier")
    optimizer = torch.optim.SGD(model.parameters(), lr=0.1)
    for step in range(10):
        optimizer.zero_grad()
        loss = model(torch.rand(8, 4).to(torch_xla.device())).mean()
        loss.backward()
        optimizer.step()
        torch_xla.sync()
        total = loss.detach()
        dist.all_reduce(total)
        torch_xla.sync()
        if rank == 0:
            print(step, total.item())


if __name__ == "__main__":
    torch_xla.launch(main)
""",
    check=check,
    target="xla",
)
