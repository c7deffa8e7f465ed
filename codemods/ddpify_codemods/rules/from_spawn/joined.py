"""DDP229: processes that a launcher starts find each other by what it says."""

from __future__ import annotations

import ast
from collections.abc import Iterator

from ...facts.backends import joins
from ...facts.launch import spawns
from ...facts.script import Script
from ...facts.spawned import is_index, is_number_started
from ...plain_words import TORCH
from ...rule import ChangeArgument, Delete, Edit, Finding, Rule
from ...targets import Target

_PARAMETERS = ("backend", "init_method", "timeout", "world_size", "rank")
_SAID = ("MASTER_ADDR", "MASTER_PORT", "RANK", "WORLD_SIZE", "LOCAL_RANK")
_LEAVES = "torch.distributed.destroy_process_group"
_REMEDY = "write init_process_group(backend, rank=rank, world_size=world_size) with what spawn hands over"


def check(script: Script, target: Target) -> Iterator[Edit | Finding]:
    """Drop the address of the group; and the group itself, where the engine has joined the processes before."""
    started = spawns(script)
    for call in joins(script) if started else ():
        given = dict(zip(_PARAMETERS, call.args, strict=False)) | {str(word.arg): word.value for word in call.keywords}
        ranks = any(is_index(script, spawn, given["rank"]) for spawn in started) if "rank" in given else False
        size = given.get("world_size")
        sizes = size is not None and any(is_number_started(script, spawn, size) for spawn in started)
        known = set(given) <= {*_PARAMETERS, "device_id"} and len(call.args) < 2
        if not (ranks and sizes and known and isinstance(script.parents[call], ast.Expr)):
            message = "the ranks of this group are not seen to be those that spawn hands over"
            yield Finding(RULE.id, "refused", call.lineno, message, _REMEDY)
        elif target.words is not TORCH:
            yield Delete(script.statement(call), f"{target.words.name} has joined the processes")
        elif "init_method" in given:
            yield ChangeArgument(call, "", "", "the launcher says where the processes meet", "init_method")
    for call in script.find(ast.Call) if started else ():
        alone = isinstance(script.parents[call], ast.Expr)
        if script.qualified(call.func) == _LEAVES and target.words is not TORCH and alone:
            yield Delete(script.statement(call), f"{target.words.name} leaves the processes when they end")
        elif script.qualified(call.func) == "os.environ.setdefault" and alone and _is_said(call.args[:1]):
            yield Delete(script.statement(call), "the launcher says where the processes meet")
    for statement in script.find(ast.Assign) if started else ():
        place = statement.targets[0]
        in_environment = isinstance(place, ast.Subscript) and script.qualified(place.value) == "os.environ"
        if in_environment and _is_said([place.slice]):  # type: ignore[attr-defined]
            yield Delete(statement, "the launcher says where the processes meet")


def _is_said(names: list[ast.expr]) -> bool:
    return any(isinstance(name, ast.Constant) and name.value in _SAID for name in names)


RULE = Rule(
    id="DDP229",
    title="Meet where the launcher says",
    why="""\
torchrun says the address of the group in the environment, mpirun's lines do (DDP227), Horovod knows it: a script that
writes its own over that waits for ever, or trains each process alone. The rank and the number of processes stay what
the function is given; a group that is joined with others is refused.""",
    before="""\
import torch
import torch.distributed as dist
import torch.multiprocessing as mp
from torch.nn.parallel import DistributedDataParallel as DDP


def train(rank, world_size):
    dist.init_process_group("nccl", init_method="tcp://localhost:29500", rank=rank, world_size=world_size)
    model = DDP(torch.nn.Linear(4, 1).to(rank), device_ids=[rank])
    optimizer = torch.optim.SGD(model.parameters(), lr=0.1)
    for _ in range(10):
        optimizer.zero_grad()
        model(torch.rand(8, 4).to(rank)).mean().backward()
        optimizer.step()
    if rank == 0:
        torch.save(model.module.state_dict(), "model.pt")
    dist.destroy_process_group()


if __name__ == "__main__":
    n_gpus = torch.cuda.device_count()
    mp.spawn(train, args=(n_gpus,), nprocs=n_gpus)
""",
    after="""\
import horovod.torch as hvd
import torch


def train(rank, world_size):
    model = torch.nn.Linear(4, 1).to(rank)
    hvd.broadcast_parameters(model.state_dict(), root_rank=0)
    optimizer = torch.optim.SGD(model.parameters(), lr=0.1)
    optimizer = hvd.DistributedOptimizer(optimizer, named_parameters=model.named_parameters())
    for _ in range(10):
        optimizer.zero_grad()
        model(torch.rand(8, 4).to(rank)).mean().backward()
        optimizer.step()
    if rank == 0:
        torch.save(model.state_dict(), "model.pt")


if __name__ == "__main__":
    hvd.init()
    n_gpus = hvd.size()
    train(hvd.rank(), n_gpus)
""",
    check=check,
    target="horovod",
)
