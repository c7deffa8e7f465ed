"""DDP203: the processes are started by torch_xla.launch."""

from __future__ import annotations

import ast
from collections.abc import Iterator

from ...facts.launch import shared_names, spawns, torchrun_guard
from ...facts.script import Script
from ...facts.world_size import is_world_size
from ...rule import ChangeParameters, Delete, Edit, Finding, GuardToFunction, Insert, Replace, Rule
from ...targets import Target

_XLA = ("import torch_xla",)
_NAME = "_mp_fn"


def check(script: Script, target: Target) -> Iterator[Edit | Finding]:
    """Replace torch.multiprocessing.spawn, or start what torchrun would have started."""
    if spawns(script):
        yield from _spawned(script)
        return
    guard = torchrun_guard(script)
    if guard is None:
        return
    main = _single_call(script, guard)
    message = "start one process a device"
    if main is not None:
        assert isinstance(guard.body[0], ast.Expr)
        yield ChangeParameters(main, "torch_xla.launch hands over the index of the process", first="index")
        yield Replace(guard.body[0].value, f"torch_xla.launch({main.name})", message, modules=_XLA)
        return
    shared = sorted(shared_names(script, guard))
    if shared:
        yield Insert(guard.body[0], f"global {', '.join(shared)}", "other functions read these names")
    code = f'\n\nif __name__ == "__main__":\n    torch_xla.launch({_NAME})\n'
    yield GuardToFunction(guard, _NAME, code, message, modules=_XLA)


def _spawned(script: Script) -> Iterator[Edit | Finding]:
    for spawn in spawns(script):
        if not spawn.plain:
            remedy = "write mp.spawn(function, args=(…), nprocs=n), without join=False, daemon or another start method"
            yield Finding(RULE.id, "refused", spawn.call.lineno, "this call of spawn has no form under XLA", remedy)
            return
        kept = [each for each in spawn.given if not is_world_size(script, spawn, each)]
        arguments = f", args=({', '.join(['{}'] * len(kept))}{',' * (len(kept) == 1)})" if kept else ""
        parts = (spawn.function, *kept)
        message = "start one process a device; XLA knows how many there are"
        yield Replace(spawn.call, f"torch_xla.launch({{}}{arguments})", message, modules=_XLA, parts=parts)
    module = next((node for node in script.find(ast.Import) if _imports_only(node, "torch.multiprocessing")), None)
    if module is not None and _only_spawns(script, module):
        yield Delete(module, "torch_xla starts the processes")


def _imports_only(node: ast.Import, module: str) -> bool:
    return len(node.names) == 1 and node.names[0].name == module


def _only_spawns(script: Script, statement: ast.Import) -> bool:
    name = statement.names[0].asname
    functions = {id(spawn.call.func) for spawn in spawns(script)}
    uses = [node for node in script.find(ast.Name) if node.id == name]
    return bool(name) and statement in script.tree.body and all(id(script.parents[use]) in functions for use in uses)


def _single_call(script: Script, guard: ast.If) -> ast.FunctionDef | None:
    """The function that the guard calls, if it does nothing else and nobody else calls that function."""
    if len(guard.body) != 1 or not isinstance(guard.body[0], ast.Expr):
        return None
    call = guard.body[0].value
    if not isinstance(call, ast.Call) or not isinstance(call.func, ast.Name) or call.args or call.keywords:
        return None
    name = call.func.id
    uses = [node for node in script.find(ast.Name) if node.id == name]
    found = [node for node in script.tree.body if isinstance(node, ast.FunctionDef) and node.name == name]
    single = len(uses) == 1 and len(found) == 1 and not found[0].decorator_list
    return found[0] if single and not list(ast.iter_child_nodes(found[0].args)) else None


RULE = Rule(
    id="DDP203",
    title="Start the processes with torch_xla.launch",
    why="""\
On XLA `torch_xla.launch(function)` starts one process a device and calls the function with its index, as PyTorch/XLA
documents. It takes the place of `torch.multiprocessing.spawn`, whose `nprocs` the runtime knows, and of torchrun: then
what stood under the main guard is what every process runs. The result is started with `python train.py`.""",
    before="""\
import argparse
import torch
import torch.distributed as dist
from torch.nn.parallel import DistributedDataParallel as DDP


def main(steps):
    model = DDP(torch.nn.Linear(4, 1).cuda())
    optimizer = torch.optim.SGD(model.parameters(), lr=0.1)
    for _ in range(steps):
        optimizer.zero_grad()
        model(torch.rand(8, 4).cuda()).mean().backward()
        optimizer.step()


if __name__ == "__main__":
    parser = argparse.ArgumentParser()
    parser.add_argument("--steps", type=int, default=10)
    dist.init_process_group("nccl")
    main(parser.parse_args().steps)
    dist.destroy_process_group()
""",
    after="""\
import argparse
import torch
import torch.distributed as dist
from torch.nn.parallel import DistributedDataParallel as DDP
import torch_xla
import torch_xla.distributed.xla_backend


def main(steps):
    model = DDP(torch.nn.Linear(4, 1).to(torch_xla.device()), gradient_as_bucket_view=True)
    optimizer = torch.optim.SGD(model.parameters(), lr=0.1)
    for _ in range(steps):
        optimizer.zero_grad()
        model(torch.rand(8, 4).to(torch_xla.device())).mean().backward()
        optimizer.step()
        torch_xla.sync()


def _mp_fn(index):
    parser = argparse.ArgumentParser()
    parser.add_argument("--steps", type=int, default=10)
    dist.init_process_group("xla", init_method="xla://")
    main(parser.parse_args().steps)
    dist.destroy_process_group()


if __name__ == "__main__":
    torch_xla.launch(_mp_fn)
""",
    check=check,
    target="xla",
)
