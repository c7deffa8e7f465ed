"""DDP204: nobody hands over the world size."""

from __future__ import annotations

import ast
from collections.abc import Iterator

from ...facts.bindings import names_in
from ...facts.devices import inside_f_string
from ...facts.launch import is_before_launch, spawns
from ...facts.script import Script
from ...facts.world_size import is_world_size, parameters, parameters_of_world_size
from ...rule import ChangeParameters, Delete, Edit, Finding, Insert, Replace, Rule
from ...targets import Target

_COUNT = "torch.cuda.device_count"
_RUNTIME = ("import torch_xla.runtime as xr",)


def check(script: Script, target: Target) -> Iterator[Edit | Finding]:
    """Take the number of processes out of what spawn handed over, and what only computed it."""
    started = {worker for spawn in spawns(script) for worker in spawn.workers}
    gone: set[ast.AST] = set()
    for spawn in spawns(script):
        kept = {node for each in spawn.given if not is_world_size(script, spawn, each) for node in ast.walk(each)}
        gone |= set(ast.walk(spawn.call)) - kept - set(ast.walk(spawn.function))
    for function, name in parameters_of_world_size(script):
        message = "ask XLA for the world size"
        yield ChangeParameters(function, message, dropped=(name,))
        calls = [call for call in script.find(ast.Call) if _calls(call, function)]
        if function in started and calls:
            remedy = "let spawn alone start it"
            message = f"{function.name} is also called directly, with a `{name}` of its own"
            yield Finding(RULE.id, "refused", calls[0].lineno, message, remedy)
        elif function in started and _reads(function, name):
            yield Insert(_first(function), f"{name} = xr.world_size()", message, modules=_RUNTIME)
        for call in calls:
            dropped = _argument(call, parameters(function).index(name), name)
            gone |= set(ast.walk(dropped)) if dropped else set()
            yield _without(call, dropped)
    yield from _unused(script, gone)


def _calls(call: ast.Call, function: ast.FunctionDef) -> bool:
    return isinstance(call.func, ast.Name) and call.func.id == function.name


def _reads(function: ast.FunctionDef, name: str) -> bool:
    return any(isinstance(node, ast.Name) and node.id == name for node in ast.walk(function))


def _first(function: ast.FunctionDef) -> ast.stmt:
    return function.body[1] if ast.get_docstring(function) and len(function.body) > 1 else function.body[0]


def _argument(call: ast.Call, position: int, name: str) -> ast.expr | None:
    named = next((keyword.value for keyword in call.keywords if keyword.arg == name), None)
    return call.args[position] if position < len(call.args) else named


def _without(call: ast.Call, dropped: ast.expr | None) -> Replace:
    places = [argument for argument in call.args if argument is not dropped]
    keywords = [keyword for keyword in call.keywords if keyword.value is not dropped]
    words = ["{}"] * len(places) + [f"{keyword.arg}={{}}" for keyword in keywords]
    parts = (call.func, *places, *(keyword.value for keyword in keywords))
    return Replace(call, f"{{}}({', '.join(words)})", "XLA knows the world size", parts=parts)


def _unused(script: Script, gone: set[ast.AST]) -> Iterator[Delete | Finding]:
    """Delete the assignments whose names only fed what is gone, and demands about them."""
    found: ast.stmt | None = next(iter(script.tree.body), None)
    while found is not None:
        touched = {node.id for node in gone if isinstance(node, ast.Name)}
        candidates = (node for node in script.find(ast.stmt) if node not in gone)
        found = next((node for node in candidates if _is_idle(script, node, touched, gone)), None)
        if found is not None:
            gone |= set(ast.walk(found))
            yield Delete(found, "XLA knows how many devices there are")
    for call in script.find(ast.Call):
        counts = script.qualified(call.func) == _COUNT and not inside_f_string(script, call)
        if call not in gone and counts and is_before_launch(script, call):
            message = "the number of GPUs is used before the processes are started"
            yield Finding(RULE.id, "refused", call.lineno, message, "use it in the function that spawn starts")


def _is_idle(script: Script, statement: ast.stmt, touched: set[str], gone: set[ast.AST]) -> bool:
    """Whether a statement only computes, or demands something of, names that are not used elsewhere."""
    if not is_before_launch(script, statement):
        return False
    if isinstance(statement, ast.Assert):
        return bool(names_in(statement.test)) and names_in(statement.test) <= touched
    if not isinstance(statement, ast.Assign) or not isinstance(statement.targets[0], ast.Name):
        return False
    calls = (node for node in ast.walk(statement.value) if isinstance(node, ast.Call))
    if not all(script.qualified(call.func) in (_COUNT, "min", "max", "int") for call in calls):
        return False
    name = statement.targets[0].id
    loads = (node for node in script.find(ast.Name) if node.id == name and isinstance(node.ctx, ast.Load))
    mine = [load for load in loads if script.scope(load) is script.scope(statement)]
    return name in touched and all(load in gone or _is_demanded(script, load, touched) for load in mine)


def _is_demanded(script: Script, load: ast.AST, touched: set[str]) -> bool:
    statement = script.statement(load)
    return isinstance(statement, ast.Assert) and names_in(statement.test) <= touched


RULE = Rule(
    id="DDP204",
    title="Ask XLA for the world size",
    why="""\
`torch_xla.launch` hands over the index of the process only: how many there are is known when they run
(`xr.world_size()`, as PyTorch/XLA documents), not before. So the number that `spawn` was given goes, together with the
arguments that carried it and the lines that computed it from the GPUs of the machine.""",
    before="""\
import torch
import torch.distributed as dist
import torch.multiprocessing as mp
from torch.nn.parallel import DistributedDataParallel as DDP


def train(rank, world_size, steps):
    dist.init_process_group("nccl", rank=rank, world_size=world_size)
    model = DDP(torch.nn.Linear(4, 1).to(rank), device_ids=[rank])
    optimizer = torch.optim.SGD(model.parameters(), lr=0.1 * world_size)
    for _ in range(steps):
        optimizer.zero_grad()
        model(torch.rand(8, 4).to(rank)).mean().backward()
        optimizer.step()


def run(function, world_size, steps):
    mp.spawn(function, args=(world_size, steps), nprocs=world_size)


if __name__ == "__main__":
    gpus = torch.cuda.device_count()
    assert gpus > 1, "one GPU is not enough"
    run(train, gpus, 10)
""",
    after="""\
import torch
import torch.distributed as dist
import torch_xla
import torch_xla.distributed.xla_backend
import torch_xla.runtime as xr
from torch.nn.parallel import DistributedDataParallel as DDP


def train(rank, steps):
    world_size = xr.world_size()
    dist.init_process_group("xla", init_method="xla://")
    model = DDP(torch.nn.Linear(4, 1).to(torch_xla.device()), gradient_as_bucket_view=True)
    optimizer = torch.optim.SGD(model.parameters(), lr=0.1 * world_size)
    for _ in range(steps):
        optimizer.zero_grad()
        model(torch.rand(8, 4).to(torch_xla.device())).mean().backward()
        optimizer.step()
        torch_xla.sync()


def run(function, steps):
    torch_xla.launch(function, args=(steps,))


if __name__ == "__main__":
    run(train, 10)
""",
    check=check,
    target="xla",
)
