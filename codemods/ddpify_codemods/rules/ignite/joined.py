"""DDP631: a hand-written process group is joined, started and left by Ignite."""

from __future__ import annotations

import ast
from collections.abc import Iterator

from ...facts.distribution import joins_process_group
from ...facts.launch import Spawn, spawns
from ...facts.launcher_environment import is_read_from, of_other_launcher
from ...facts.script import Script
from ...rule import Delete, Edit, Finding, Replace, Rule
from ...targets import Target

_PARAMETERS = ("backend", "init_method", "timeout", "world_size", "rank")
_BACKENDS = ("nccl", "gloo", "mpi")
_USUAL = '"nccl" if torch.cuda.is_available() else "gloo"'
_LEAVES = "torch.distributed.destroy_process_group"


def check(script: Script, target: Target) -> Iterator[Edit | Finding]:
    """Replace init_process_group, destroy_process_group and torch.multiprocessing.spawn."""
    started, calls = spawns(script), list(script.find(ast.Call))
    joined = [call for call in calls if joins_process_group(script, call)]
    modules = target.words.imports
    for call in joined:
        problem = _problem(script, call, bool(started))
        if problem:
            remedy = "write init_process_group(backend), and let torchrun or spawn say the ranks"
            yield Finding(RULE.id, "refused", call.lineno, problem, remedy)
        elif started:
            yield Delete(script.statement(call), "idist.spawn joins the processes before it calls the function")
            made = _assigned(script, call)
            if made is not None:
                yield Delete(made, "it is given to idist.spawn")
        else:
            given = _given(call)
            backend = given.get("backend")
            template = f"idist.initialize({'{}' if backend else _USUAL}{', timeout={}' if 'timeout' in given else ''})"
            parts = tuple(given[name] for name in ("backend", "timeout") if name in given)
            needed = modules if backend else (*modules, "import torch")
            yield Replace(call, template, "join the processes", modules=needed, parts=parts)
    for node in script.find(ast.Constant):
        other = of_other_launcher(node)
        if other and not other.startswith("SLURM_"):
            message = f"{other}: Ignite does not know what mpirun says"
            remedy = "read RANK and LOCAL_RANK, as torchrun sets them"
            yield Finding(RULE.id, "refused", node.lineno, message, remedy)
    for call in calls:
        if script.qualified(call.func) == _LEAVES:
            if started and isinstance(script.parents[call], ast.Expr):
                yield Delete(script.statement(call), "idist.spawn leaves the processes after the function")
            else:
                yield Replace(call, "idist.finalize()", "leave the processes", modules=modules)
    for spawn in started:
        yield from _spawned(script, spawn, joined, modules)
    if started:
        yield from _addresses(script)


def _given(call: ast.Call) -> dict[str, ast.expr]:
    named = {word.arg: word.value for word in call.keywords if word.arg}
    return dict(zip(_PARAMETERS, call.args, strict=False)) | named


def _problem(script: Script, call: ast.Call, started: bool) -> str:
    """Why Ignite cannot join these processes; "" where it can."""
    given = _given(call)
    hidden = any(word.arg is None for word in call.keywords) or any(isinstance(each, ast.Starred) for each in call.args)
    if hidden or set(given) - {*_PARAMETERS, "device_id"} or not isinstance(script.parents[call], ast.Expr):
        return "Ignite has no form of this call"
    method, backend = given.get("init_method"), given.get("backend")
    if (
        method is not None
        and not started
        and not (isinstance(method, ast.Constant) and method.value in (None, "env://"))
    ):
        return "Ignite finds the other processes by the environment, not by this init_method"
    if isinstance(backend, ast.Constant) and backend.value not in (*_BACKENDS, None):
        return f"Ignite has no backend {backend.value!r}"
    variables = {"rank": "RANK", "world_size": "WORLD_SIZE"}
    own = any(name in given and not is_read_from(script, given[name], word) for name, word in variables.items())
    return "Ignite takes ranks from the launcher, and this script counts them itself" if own and not started else ""


def _spawned(
    script: Script, spawn: Spawn, joined: list[ast.Call], modules: tuple[str, ...]
) -> Iterator[Edit | Finding]:
    backends = {_backend(script, call) for call in joined}
    if not spawn.plain or len(backends) != 1 or "" in backends:
        message = "which backend the spawned processes take is not written down in this file"
        remedy = 'write init_process_group("gloo") in the function that is spawned'
        if not spawn.plain:
            message = "this call of spawn has no form in Ignite"
            remedy = "write mp.spawn(function, args=(…), nprocs=n), without join=False, daemon or another start method"
        yield Finding(RULE.id, "refused", spawn.call.lineno, message, remedy)
        return
    arguments = f"({', '.join(['{}'] * len(spawn.given))}{',' * (len(spawn.given) == 1)})"
    counted = [spawn.processes] if spawn.processes is not None else []
    template = f"idist.spawn({backends.pop()}, {{}}, args={arguments}, nproc_per_node={'{}' if counted else 1})"
    parts = (spawn.function, *spawn.given, *counted)
    message = "let Ignite start the processes"
    yield Replace(spawn.call, template, message, modules=(*modules, "import torch"), parts=parts)


def _backend(script: Script, call: ast.Call) -> str:
    """The source of a call's backend, that means the same anywhere in the file; "" where there is none."""
    value = _given(call).get("backend", ast.Constant(None))
    assigned = _assigned(script, call)
    value = assigned.value if assigned is not None else value
    if isinstance(value, ast.Constant):
        return f'"{value.value!s}"' if value.value else _USUAL
    names = {node.id for node in ast.walk(value) if isinstance(node, ast.Name)}
    return (ast.get_source_segment(script.text, value) or "") if names <= {"torch"} else ""


def _assigned(script: Script, call: ast.Call) -> ast.Assign | None:
    """The assignment of a backend that is read by its call alone."""
    given = _given(call).get("backend")
    if not isinstance(given, ast.Name):
        return None
    uses = [node for node in script.find(ast.Name) if node.id == given.id]
    made = [node for node in script.find(ast.Assign) if node.targets[0] in uses]
    alone = len(uses) == 2 and len(made) == 1 and script.scope(made[0]) is script.scope(call)
    return made[0] if alone else None


def _addresses(script: Script) -> Iterator[Delete]:
    """Drop the address of the group, which the environment of idist.spawn has."""
    for statement in script.find(ast.Assign):
        place = statement.targets[0]
        if not isinstance(place, ast.Subscript) or script.qualified(place.value) != "os.environ":
            continue
        address = isinstance(place.slice, ast.Constant) and place.slice.value in ("MASTER_ADDR", "MASTER_PORT")
        if address and isinstance(script.scope(statement), ast.FunctionDef | ast.AsyncFunctionDef):
            yield Delete(statement, "idist.spawn has set the address")


RULE = Rule(
    id="DDP631",
    title="Let Ignite join the processes",
    why="""\
A script that is distributed by hand divides its own data; that stays. Ignite joins its processes: `idist.initialize`
reads what torchrun or srun says, `idist.spawn` takes the place of torch's, joins the processes before the function and
leaves them after it. Ranks that a script counts itself are refused, and backends that Ignite has not.""",
    before="""\
import os
import torch
import torch.distributed as dist
import torch.multiprocessing as mp
from torch.nn.parallel import DistributedDataParallel as DDP


def train(rank, world_size, steps):
    os.environ["MASTER_ADDR"] = "localhost"
    os.environ["MASTER_PORT"] = "29500"
    dist.init_process_group("gloo", rank=rank, world_size=world_size)
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
import torch
import ignite.distributed as idist


def train(rank, world_size, steps):
    model = idist.auto_model(torch.nn.Linear(4, 1))
    optimizer = idist.auto_optim(torch.optim.SGD(model.parameters(), lr=0.1))
    for _ in range(steps):
        optimizer.zero_grad()
        model(torch.rand(8, 4)).mean().backward()
        optimizer.step()


if __name__ == "__main__":
    idist.spawn("gloo", train, args=(2, 10), nproc_per_node=2)
""",
    check=check,
    target="ignite",
)
