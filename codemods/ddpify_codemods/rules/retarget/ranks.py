"""DDP205: rank and world size come from the XLA runtime, not from torchrun's environment."""

from __future__ import annotations

import ast
from collections.abc import Iterator

from ...facts.bindings import bindings
from ...facts.devices import indexed_string, inside_f_string
from ...facts.distribution import joins_process_group
from ...facts.launch import is_before_launch
from ...facts.launcher_environment import VARIABLES, read_variable, variable_of
from ...facts.leftovers import idle_assignments
from ...facts.origins import passed
from ...facts.script import Script
from ...rule import Delete, Edit, Finding, Insert, Replace, Rule
from ...targets import Target

_MODULES = ("import torch_xla.runtime as xr",)
_MESSAGE = "ask XLA for the place of this process"


def check(script: Script, target: Target) -> Iterator[Edit | Finding]:
    """Replace what torchrun and the launcher of older versions of torch hand over."""
    idle = set(idle_assignments(script))
    for node in script.find(ast.expr):
        variable = read_variable(script, node)
        if variable and not inside_f_string(script, node):
            yield from _read(script, node, VARIABLES[variable])
        elif isinstance(node, ast.JoinedStr) and not indexed_string(node) and _reads_environment(script, node):
            message = "the place of the process is read inside an f-string"
            yield Finding(RULE.id, "refused", node.lineno, message, "give it a name before")
    for statement in script.find(ast.Assign):
        place = statement.targets[0]
        if isinstance(place, ast.Subscript) and variable_of(script, place):
            yield Delete(statement, "XLA knows the place of this process")
        elif _is_parsed(script, statement) and _has_local_rank(script):
            name = ast.unparse(place)
            code = f"{name}.local_rank = xr.local_ordinal()"
            yield from _placed(script, statement, Insert(statement, code, _MESSAGE, "after", modules=_MODULES))
    for call in script.find(ast.Call):
        if joins_process_group(script, call):
            yield from _given(script, call)
        elif script.qualified(call.func).endswith("DistributedSampler"):
            yield from _counted(call)
        elif _counts_gpus(script, call) and script.statement(call) not in idle:
            message = "ask XLA for the number of devices of this machine"
            yield Replace(call, "xr.local_device_count()", message, modules=_MODULES)


def _counted(sampler: ast.Call) -> Iterator[Edit]:
    """A number of replicas that is written down."""
    for keyword in sampler.keywords:
        number = keyword.value
        if keyword.arg == "num_replicas" and isinstance(number, ast.Constant) and number.value is not None:
            yield Replace(number, "xr.world_size()", _MESSAGE, modules=_MODULES)


def _reads_environment(script: Script, text: ast.JoinedStr) -> bool:
    return any(read_variable(script, node) for node in ast.walk(text))


def _counts_gpus(script: Script, call: ast.Call) -> bool:
    counts = script.qualified(call.func) == "torch.cuda.device_count"
    return counts and not is_before_launch(script, call) and not inside_f_string(script, call)


def _read(script: Script, node: ast.expr, code: str) -> Iterator[Edit | Finding]:
    if isinstance(node, ast.Compare):
        yield Replace(node, "True", "XLA always knows the place of this process")
        return
    parent = script.parents[node]
    if isinstance(parent, ast.Call) and script.qualified(parent.func) == "int" and parent.args == [node]:
        yield from _placed(script, node, Replace(parent, code, _MESSAGE, modules=_MODULES))
    else:
        yield from _placed(script, node, Replace(node, f"str({code})", _MESSAGE, modules=_MODULES))


def _placed(script: Script, node: ast.AST, edit: Edit) -> Iterator[Edit | Finding]:
    if not is_before_launch(script, node):
        yield edit
        return
    remedy = "move it into the function that is started"
    message = "the place of the process is asked for where the processes of XLA are not started yet"
    yield Finding(RULE.id, "refused", script.statement(node).lineno, message, remedy)


def _is_parsed(script: Script, statement: ast.Assign) -> bool:
    call = statement.value
    return isinstance(call, ast.Call) and isinstance(call.func, ast.Attribute) and call.func.attr == "parse_args"


def _has_local_rank(script: Script) -> bool:
    return any(node.value in ("--local_rank", "--local-rank") for node in script.find(ast.Constant))


def _given(script: Script, call: ast.Call) -> Iterator[Edit | Finding]:
    """What holds rank and world size for init_process_group goes on to hold them."""
    for keyword in call.keywords:
        code = {"rank": "xr.global_ordinal()", "world_size": "xr.world_size()"}.get(keyword.arg or "")
        if code:
            yield from _held(script, keyword.value, code)


def _held(script: Script, holder: ast.expr, code: str, depth: int = 4) -> Iterator[Edit | Finding]:
    scope = script.scope(holder)
    if isinstance(holder, ast.Attribute):
        line = f"{ast.unparse(holder)} = {code}"
        edit = Insert(script.statement(holder), line, _MESSAGE, modules=_MODULES)
        yield from _placed(script, holder, edit)
    elif isinstance(holder, ast.Name) and holder.id in bindings(script, scope):
        for value in bindings(script, scope)[holder.id]:
            if not _knows(script, value):
                yield from _placed(script, value, Replace(value, code, _MESSAGE, modules=_MODULES))
    elif isinstance(holder, ast.Name) and not isinstance(scope, ast.Module) and depth:
        for argument in passed(script, scope, holder.id):
            yield from _held(script, argument, code, depth - 1)


def _knows(script: Script, value: ast.expr) -> bool:
    """Whether a value is taken from the process group, or from the environment, which another edit replaces."""
    nodes = [node for node in ast.walk(value) if isinstance(node, ast.expr)]
    group = "torch.distributed."
    return any(script.qualified(node).startswith(group) or read_variable(script, node) for node in nodes)


RULE = Rule(
    id="DDP205",
    title="Ask XLA for rank and world size",
    why="""\
Processes of torch_xla.launch have no RANK, LOCAL_RANK or WORLD_SIZE in their environment and no `--local_rank` on
their command line. `xr.global_ordinal()`, `xr.local_ordinal()` and `xr.world_size()` say the same (the third change of
PyTorch/XLA's documentation). `dist.get_rank()` and `dist.get_world_size()` stay: the process group of XLA knows.""",
    before="""\
import os
import torch
import torch.distributed as dist
from torch.nn.parallel import DistributedDataParallel as DDP


def main():
    local_rank = int(os.environ["LOCAL_RANK"])
    dist.init_process_group("nccl")
    torch.cuda.set_device(local_rank)
    model = torch.nn.Linear(4, 1).to(local_rank)
    ddp_model = DDP(model, device_ids=[local_rank])
    optimizer = torch.optim.SGD(ddp_model.parameters(), lr=0.1 * int(os.environ["WORLD_SIZE"]))
    for step in range(10):
        optimizer.zero_grad()
        ddp_model(torch.rand(8, 4).to(local_rank)).mean().backward()
        optimizer.step()
        if dist.get_rank() == 0:
            print(step)


if __name__ == "__main__":
    main()
""",
    after="""\
import os
import torch
import torch.distributed as dist
from torch.nn.parallel import DistributedDataParallel as DDP
import torch_xla
import torch_xla.distributed.xla_backend
import torch_xla.runtime as xr


def main(index):
    local_rank = xr.local_ordinal()
    dist.init_process_group("xla", init_method="xla://")
    model = torch.nn.Linear(4, 1).to(torch_xla.device())
    ddp_model = DDP(model, gradient_as_bucket_view=True)
    optimizer = torch.optim.SGD(ddp_model.parameters(), lr=0.1 * xr.world_size())
    for step in range(10):
        optimizer.zero_grad()
        ddp_model(torch.rand(8, 4).to(torch_xla.device())).mean().backward()
        optimizer.step()
        torch_xla.sync()
        if dist.get_rank() == 0:
            print(step)


if __name__ == "__main__":
    torch_xla.launch(main)
""",
    check=check,
    target="xla",
)
