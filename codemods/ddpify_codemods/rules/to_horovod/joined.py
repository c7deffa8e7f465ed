"""DDP651: the processes of torchrun are those of horovodrun."""

from __future__ import annotations

import ast
from collections.abc import Iterator

from ...facts.backends import joins
from ...facts.devices import inside_f_string
from ...facts.f_strings import with_calls_replaced
from ...facts.launcher_environment import is_read_from, of_other_launcher, read_variable
from ...facts.script import Script
from ...rule import ChangeArgument, Delete, Edit, Finding, Insert, Replace, Rule
from ...targets import Target

_PARAMETERS = ("backend", "init_method", "timeout", "world_size", "rank")
_VARIABLES = {
    "RANK": "hvd.rank()",
    "WORLD_SIZE": "hvd.size()",
    "LOCAL_RANK": "hvd.local_rank()",
    "LOCAL_WORLD_SIZE": "hvd.local_size()",
}
SAID = {
    "torch.distributed.get_rank": "hvd.rank()",
    "torch.distributed.get_world_size": "hvd.size()",
    "torch.distributed.barrier": "hvd.barrier()",
    "torch.distributed.is_initialized": "hvd.is_initialized()",
    "torch.distributed.is_available": "True",
    "torch.distributed.destroy_process_group": "hvd.shutdown()",
}
_SAMPLERS = ("torch.utils.data.distributed.DistributedSampler", "torch.utils.data.DistributedSampler")
_MESSAGE = "ask Horovod"


def check(script: Script, target: Target) -> Iterator[Edit | Finding]:
    """Join by hvd.init, and ask Horovod for ranks, which samplers are told."""
    modules = target.words.imports
    for call in joins(script):
        yield from _joined(script, call, modules)
    for call in script.find(ast.Call):
        name = script.qualified(call.func)
        if name in SAID and not call.args and not call.keywords and not inside_f_string(script, call):
            yield Replace(call, SAID[name], _MESSAGE, modules=modules)
        elif name in _SAMPLERS:
            given = {*("dataset", "num_replicas", "rank")[: len(call.args)], *(word.arg for word in call.keywords)}
            for word, value in (("num_replicas", "hvd.size()"), ("rank", "hvd.rank()")):
                if word not in given:
                    yield ChangeArgument(call, word, value, "divide by Horovod's ranks", modules=modules)
    for text in script.find(ast.Constant):
        if other := of_other_launcher(text):
            message, remedy = f"{other}: horovodrun does not say it", "read RANK and LOCAL_RANK, as torchrun sets them"
            yield Finding(RULE.id, "refused", text.lineno, message, remedy)
    for node in script.find(ast.expr):
        if read_variable(script, node) and not inside_f_string(script, node):
            yield _read(script, node, modules)
    for joined in script.find(ast.JoinedStr):
        calls = [
            each for each in ast.walk(joined) if isinstance(each, ast.Call) and not each.args and not each.keywords
        ]
        said = {ast.unparse(each): SAID[name] for each in calls if (name := script.qualified(each.func)) in SAID}
        code = "" if inside_f_string(script, joined) else with_calls_replaced(script, joined, said)
        if code:
            yield Replace(joined, code, _MESSAGE, modules=modules)


def _read(script: Script, node: ast.expr, modules: tuple[str, ...]) -> Replace:
    around = script.parents[node]
    if isinstance(node, ast.Compare):
        return Replace(node, "True", "horovodrun has started it")
    code = _VARIABLES[read_variable(script, node)]
    if isinstance(around, ast.Call) and ast.unparse(around.func) == "int" and len(around.args) == 1:
        return Replace(around, code, _MESSAGE, modules=modules)
    return Replace(node, f"str({code})", _MESSAGE, modules=modules)


def _joined(script: Script, call: ast.Call, modules: tuple[str, ...]) -> Iterator[Edit | Finding]:
    given = dict(zip(_PARAMETERS, call.args, strict=False)) | {str(word.arg): word.value for word in call.keywords}
    statement, method = script.parents[call], given.get("init_method")
    variables = {"rank": "RANK", "world_size": "WORLD_SIZE"}
    counted = any(name in given and not is_read_from(script, given[name], word) for name, word in variables.items())
    known = set(given) <= {*_PARAMETERS, "device_id"} and isinstance(statement, ast.Expr)
    plain = method is None or (isinstance(method, ast.Constant) and method.value in (None, "env://"))
    reads = [node for node in script.find(ast.expr) if read_variable(script, node) and node.lineno < call.lineno]
    block = script.parents[script.statement(call)]
    places = [(node, _in_block(script, node, block)) for node in reads]
    here = sorted((place for _, place in places if place is not None), key=lambda place: place.lineno)
    outside = [node for node, place in places if place is None and isinstance(script.scope(node), ast.Module)]
    if counted or not known or not plain or outside:
        message = "Horovod has no form of this call: horovodrun says the ranks, when hvd.init() has been called"
        remedy = "write init_process_group(backend) before RANK or LOCAL_RANK is read"
        yield Finding(RULE.id, "refused", call.lineno, message, remedy)
        return
    yield Insert(
        here[0] if here else script.statement(call), "hvd.init()", "join the processes", modules=modules, above=True
    )
    yield Delete(script.statement(call), "")


def _in_block(script: Script, node: ast.AST, block: ast.AST) -> ast.stmt | None:
    """The statement of a block that a node stands in."""
    around = (each for each in (node, *script.ancestors(node)) if isinstance(each, ast.stmt))
    return next((each for each in around if script.parents.get(each) is block), None)


RULE = Rule(
    id="DDP651",
    title="Join the processes with Horovod",
    why="""\
horovodrun starts the processes, and Horovod says their ranks once `hvd.init()` has been called; so it comes before the
first question for one. A DistributedSampler asks torch's process group by itself, which is not there: it is told. A
script that starts its own processes, or counts its ranks itself, is refused.""",
    before="""\
import os

import torch
import torch.distributed as dist
from torch.nn.parallel import DistributedDataParallel as DDP
from torch.utils.data import DataLoader, TensorDataset
from torch.utils.data.distributed import DistributedSampler

local_rank = int(os.environ["LOCAL_RANK"])
torch.cuda.set_device(local_rank)
dist.init_process_group("nccl")
dataset = TensorDataset(torch.rand(64, 4), torch.rand(64, 1))
sampler = DistributedSampler(dataset)
loader = DataLoader(dataset, batch_size=8, sampler=sampler)
model = DDP(torch.nn.Linear(4, 1).cuda(), device_ids=[local_rank])
optimizer = torch.optim.SGD(model.parameters(), lr=0.1)
for epoch in range(2):
    sampler.set_epoch(epoch)
    for x, y in loader:
        optimizer.zero_grad()
        torch.nn.functional.mse_loss(model(x.cuda()), y.cuda()).backward()
        optimizer.step()
if dist.get_rank() == 0:
    print(f"trained by {dist.get_world_size()}")
dist.destroy_process_group()
""",
    after="""\
import horovod.torch as hvd
import torch
from torch.utils.data import DataLoader, TensorDataset
from torch.utils.data.distributed import DistributedSampler

hvd.init()
local_rank = hvd.local_rank()
torch.cuda.set_device(local_rank)
dataset = TensorDataset(torch.rand(64, 4), torch.rand(64, 1))
sampler = DistributedSampler(dataset, num_replicas=hvd.size(), rank=hvd.rank())
loader = DataLoader(dataset, batch_size=8, sampler=sampler)
model = torch.nn.Linear(4, 1).cuda()
hvd.broadcast_parameters(model.state_dict(), root_rank=0)
optimizer = torch.optim.SGD(model.parameters(), lr=0.1)
optimizer = hvd.DistributedOptimizer(optimizer, named_parameters=model.named_parameters())
for epoch in range(2):
    sampler.set_epoch(epoch)
    for x, y in loader:
        optimizer.zero_grad()
        torch.nn.functional.mse_loss(model(x.cuda()), y.cuda()).backward()
        optimizer.step()
if hvd.rank() == 0:
    print(f"trained by {hvd.size()}")
hvd.shutdown()
""",
    check=check,
    target="horovod",
)
