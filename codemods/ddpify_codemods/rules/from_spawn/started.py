"""DDP228: the processes that a script started itself are those of a launcher."""

from __future__ import annotations

import ast
from collections.abc import Iterator

from ...facts.launch import Spawn, spawns
from ...facts.origins import sources
from ...facts.script import Script
from ...facts.spawned import counts, done_once
from ...facts.world_size import is_world_size
from ...plain_words import TORCH
from ...rule import Edit, Finding, Insert, Replace, Rule
from ...targets import Target

_OF_TORCH = ('int(os.environ["RANK"])', 'int(os.environ["WORLD_SIZE"])', ("import os",))
_MESSAGE = "the launcher says how many processes there are"


def check(script: Script, target: Target) -> Iterator[Edit | Finding]:
    """Call what torch.multiprocessing.spawn started, with the rank that the launcher has said."""
    started = spawns(script)
    words = target.words
    rank, size, modules = _OF_TORCH if words is TORCH else (words.rank, words.world_size, words.imports)
    for spawn in started:
        counted = counts(script, spawn)
        problem, remedy = _problem(script, spawn, counted)
        if problem:
            yield Finding(RULE.id, "refused", spawn.call.lineno, problem, remedy)
            continue
        inside = set(ast.walk(spawn.call))
        elsewhere = [each for each in counted or () if each not in inside]
        for each in elsewhere:
            yield Replace(each, size, _MESSAGE, modules=modules)
        if words is not TORCH:
            first = elsewhere[0] if len(elsewhere) == 1 else spawn.call
            yield Insert(script.statement(first), words.join, "join the processes", modules=modules, above=True)
        fixed = {each for each in spawn.given if is_world_size(script, spawn, each) and not sources(script, each)}
        given = ", ".join(["{}", *(size if each in fixed else "{}" for each in spawn.given)])
        call = f"{{}}({given.replace('{}', rank, 1)})"
        parts = (spawn.function, *(each for each in spawn.given if each not in fixed))
        message = "the launcher starts the processes"
        yield Replace(spawn.call, call, message, modules=modules, parts=parts)
    for statement in dict.fromkeys(done_once(script)) if started else ():
        message = "the process that starts the others does this once; under a launcher each of them would"
        remedy = "put it into the function that is spawned, below `if rank == 0:`"
        yield Finding(RULE.id, "refused", statement.lineno, message, remedy)


def _problem(script: Script, spawn: Spawn, counted: list[ast.expr] | None) -> tuple[str, str]:
    """Why a launcher cannot start what is spawned here, and what to do; "" where it can."""
    if not spawn.plain or not isinstance(script.parents[spawn.call], ast.Expr):
        remedy = "write mp.spawn(function, args=(…), nprocs=n), without join=False, daemon or another start method"
        return "this call of spawn has no form under a launcher", remedy
    if not spawn.workers:
        return "the function that is spawned is not in this file", "define it here, or read the rank from RANK"
    if counted is None:
        remedy = "write nprocs=torch.cuda.device_count(), or read the rank and their number from the environment"
        return "how many processes are started is not known before the run", remedy
    return "", ""


RULE = Rule(
    id="DDP228",
    title="Let a launcher start the processes",
    why="""\
Some targets are started by their launcher alone (mpirun, horovodrun), and `--entry torchrun` asks for one: the function
that `torch.multiprocessing.spawn` started is called in each of the launcher's processes, with the rank that these have.
The ranks of a script that spawns are those of one machine, and so are the GPUs that it chooses by them. What the first
process did alone, before or after, would be done by all: it is refused where it writes.""",
    before="""\
import os

import torch
import torch.distributed as dist
import torch.multiprocessing as mp
from torch.nn.parallel import DistributedDataParallel as DDP


def train(rank, world_size, steps):
    os.environ["MASTER_ADDR"] = "localhost"
    os.environ["MASTER_PORT"] = "29500"
    backend = "gloo"
    dist.init_process_group(backend, rank=rank, world_size=world_size)
    model = DDP(torch.nn.Linear(4, 1))
    optimizer = torch.optim.SGD(model.parameters(), lr=0.1)
    for _ in range(steps):
        optimizer.zero_grad()
        model(torch.rand(8, 4)).mean().backward()
        optimizer.step()
    dist.destroy_process_group()


if __name__ == "__main__":
    mp.spawn(train, args=(2, 10), nprocs=2)
""",
    after="""\
import os

import torch
import torch.distributed as dist
from torch.nn.parallel import DistributedDataParallel as DDP

os.environ.setdefault("RANK", os.environ.get("PMI_RANK", os.environ.get("OMPI_COMM_WORLD_RANK", "0")))
os.environ.setdefault("WORLD_SIZE", os.environ.get("PMI_SIZE", os.environ.get("OMPI_COMM_WORLD_SIZE", "1")))
os.environ.setdefault("MASTER_ADDR", "127.0.0.1")
os.environ.setdefault("MASTER_PORT", "29500")


def train(rank, world_size, steps):
    backend = "mpi" if dist.is_mpi_available() and not dist.is_torchelastic_launched() else "gloo"
    dist.init_process_group(backend, rank=rank, world_size=world_size)
    model = DDP(torch.nn.Linear(4, 1))
    optimizer = torch.optim.SGD(model.parameters(), lr=0.1)
    for _ in range(steps):
        optimizer.zero_grad()
        model(torch.rand(8, 4)).mean().backward()
        optimizer.step()
    dist.destroy_process_group()


if __name__ == "__main__":
    train(int(os.environ["RANK"]), int(os.environ["WORLD_SIZE"]), 10)
""",
    check=check,
    target="mpi",
)
