"""DDP222: what chose a GPU in a hand-written script stays on the CPU."""

from __future__ import annotations

import ast
from collections.abc import Iterator

from ...facts.backends import answered, decided, device_arguments, is_number
from ...facts.devices import Branches, asks_for_accelerator, branches_of, indexed_string, inside_f_string
from ...facts.gpu_answers import demands_gpu
from ...facts.leftovers import chooses_gpu, idle_assignments
from ...facts.origins import sources
from ...facts.places import is_device_call
from ...facts.script import Script
from ...rule import Delete, Edit, Finding, Replace, Rule
from ...targets import Target
from ..convert import tensor_types
from ..devices import cuda_calls, device_strings, gpu_checks

_SETTINGS = frozenset(f"torch.cuda.{name}" for name in ("set_device", "synchronize", "init", "reset_peak_memory_stats"))
_MESSAGE = "stay on the CPU"


def check(script: Script, target: Target) -> Iterator[Edit | Finding]:
    """Rewrite devices, and leave out what only sets one up."""
    if target.is_accelerator:
        return
    script = answered(script)
    skipped = set(decided(script, target))
    choices = len(skipped)
    for statement in (each for each in idle_assignments(script) if is_number(script, each.value)):
        yield Delete(statement, "nothing asks for the number of a GPU any more")
        skipped.update(ast.walk(statement))
    for setting in _settings(script, target, skipped):
        yield setting
        skipped.update(ast.walk(setting.at))
    for table in _maps(script, skipped):
        yield table
        skipped.update(ast.walk(table.node))
    for number in _numbers(script, skipped):
        yield number
        skipped.add(number.node)
    rules = (device_strings, cuda_calls, tensor_types)
    found = [item for rule in rules for item in rule.check(script, target) if _node(item) not in skipped]
    yield from found
    if found or len(skipped) > choices:  # the run would choose a GPU beside what stays on the CPU now
        yield from (item for item in gpu_checks.check(script, target) if _node(item) not in skipped)


def _node(item: Edit | Finding) -> ast.AST | None:
    return item.node if isinstance(item, Replace) else item.at if isinstance(item, Delete) else None


def _settings(script: Script, target: Target, skipped: set[ast.AST]) -> Iterator[Delete]:
    branches = branches_of(script, target)
    for statement in script.find(ast.stmt):
        if statement in skipped:
            continue
        called = statement.value if isinstance(statement, ast.Expr) else None
        if isinstance(called, ast.Call) and script.qualified(called.func) in _SETTINGS:
            yield Delete(statement, "there is no GPU to set up")
        elif isinstance(statement, ast.Assert | ast.If) and _demands(branches, statement):
            yield Delete(statement, f"drop the demand for a GPU: the {target.name} target needs none")


def _demands(branches: Branches, statement: ast.Assert | ast.If) -> bool:
    calls = [call for call in ast.walk(statement.test) if isinstance(call, ast.Call)]
    asks = [call for call in calls if asks_for_accelerator(branches.script, call)]
    if isinstance(statement, ast.Assert):
        return bool(asks) and branches.truth(statement.test) is False
    return any(demands_gpu(branches, statement, call) for call in asks)


def _maps(script: Script, skipped: set[ast.AST]) -> Iterator[Replace]:
    """`map_location={"cuda:0": f"cuda:{rank}"}`."""
    for call in script.find(ast.Call):
        if script.qualified(call.func) == "torch.load" or any(word.arg == "map_location" for word in call.keywords):
            given = [*call.args[1:2], *(word.value for word in call.keywords if word.arg == "map_location")]
            for value in given:
                for each in (value, *sources(script, value)):
                    if isinstance(each, ast.Dict) and each not in skipped and all(map(indexed_string, each.values)):
                        yield Replace(each, '"cpu"', "load onto the CPU")


def _numbers(script: Script, skipped: set[ast.AST]) -> Iterator[Replace]:
    """A GPU by its number: `device = rank` where it is for devices alone, `.to(rank)`, `torch.device(rank)`."""
    named = set()
    for statement in script.find(ast.Assign):
        name = statement.targets[0]
        if isinstance(name, ast.Name) and len(statement.targets) == 1 and is_number(script, statement.value):
            uses = [node for node in script.find(ast.Name) if node.id == name.id and isinstance(node.ctx, ast.Load)]
            mine = [use for use in uses if script.scope(use) is script.scope(name)]
            around = ((use, script.parents[use]) for use in mine)
            moved = any(isinstance(call, ast.Call) and use in device_arguments(call) for use, call in around)
            if moved and len(mine) == len(uses) and all(chooses_gpu(script, use) for use in mine):
                named.update(mine)
                yield Replace(statement.value, '"cpu"', _MESSAGE)
    for call in script.find(ast.Call):
        if call in skipped or inside_f_string(script, call):
            continue
        places = device_arguments(call)
        if is_device_call(script, call) and len(call.args) == 1:
            places = call.args[:1]
        for place in places:
            if place not in named and is_number(script, place):
                yield Replace(place, '"cpu"', _MESSAGE)


RULE = Rule(
    id="DDP222",
    title="Stay on the CPU",
    why="""\
For CPUs, gloo and one process for each share of the cores, what chose a GPU goes or names the CPU:
`torch.cuda.set_device(rank)`, `.cuda(rank)`, `.to(rank)`, `f"cuda:{rank}"`, `map_location={"cuda:0": …}`. What a script
does only if there is a GPU stays as it is, if that is all that it says of GPUs.""",
    before="""\
import torch
import torch.distributed as dist
import torch.multiprocessing as mp
from torch.nn.parallel import DistributedDataParallel as DDP


def train(rank, world_size):
    dist.init_process_group("nccl", "tcp://127.0.0.1:29500", rank=rank, world_size=world_size)
    torch.cuda.set_device(rank)
    device = torch.device(f"cuda:{rank}")
    model = DDP(torch.nn.Linear(4, 1).to(device), device_ids=[rank])
    optimizer = torch.optim.SGD(model.parameters(), lr=0.1)
    model(torch.rand(8, 4).cuda(rank, non_blocking=True)).mean().backward()
    optimizer.step()


if __name__ == "__main__":
    mp.spawn(train, args=(2,), nprocs=2)
""",
    after="""\
import torch
import torch.distributed as dist
import torch.multiprocessing as mp
from torch.nn.parallel import DistributedDataParallel as DDP


def train(rank, world_size):
    dist.init_process_group("gloo", "tcp://127.0.0.1:29500", rank=rank, world_size=world_size)
    device = torch.device("cpu")
    model = DDP(torch.nn.Linear(4, 1).to(device))
    optimizer = torch.optim.SGD(model.parameters(), lr=0.1)
    model(torch.rand(8, 4).cpu()).mean().backward()
    optimizer.step()


if __name__ == "__main__":
    mp.spawn(train, args=(2,), nprocs=2)
""",
    check=check,
    target="cpu",
)
