"""DDP711: the model is whole in its one process."""

from __future__ import annotations

import ast
import itertools
from collections.abc import Iterator

from ...facts.plain_code import DIST, FULLY_SHARD, is_world_size
from ...facts.script import Script
from ...rule import Delete, Edit, Finding, Replace, Rule
from ...targets import Target

_MESH = f"{DIST}.device_mesh.init_device_mesh"
_STATES = f"{DIST}.checkpoint.state_dict"
_SENT = "for tensor in {}.state_dict().values():\n    dist.broadcast(tensor, 0)"
_WHOLE = "StateDictOptions(full_state_dict=True, cpu_offload=True)"
_FROM_RANK_0 = "StateDictOptions(full_state_dict=True, broadcast_from_rank0=True)"


def check(script: Script, target: Target) -> Iterator[Edit | Finding]:
    """Take out what divides a model over the ranks, and what puts it together where it is saved and loaded."""
    models = {ast.unparse(call.args[0]) for call in script.find(ast.Call) if _shards(script, call)}
    for node in script.find(ast.stmt) if models else ():
        if _divides(script, node) or ast.unparse(node) in {_SENT.format(model) for model in models}:
            yield Delete(node, "leave the model whole")
    for call in script.find(ast.Call):
        name = script.qualified(call.func)
        given = [ast.unparse(each.value) for each in call.keywords]
        if name == f"{_STATES}.get_model_state_dict" and len(call.args) == 1 and given == [_WHOLE]:
            yield Replace(call, "{}.state_dict()", "it is whole", parts=(call.args[0],))
        elif name == f"{_STATES}.set_model_state_dict" and len(call.args) == 2 and given == [_FROM_RANK_0]:
            model, state = call.args
            if isinstance(state, ast.Call) and ast.unparse(state.func) == "dict" and len(state.args) == 1:
                state = state.args[0]  # it changes what it is given
            yield Replace(call, "{}.load_state_dict({})", "load the whole", parts=(model, state))
            yield from _divided_again(script, call, ast.unparse(model))


def _shards(script: Script, call: ast.Call) -> bool:
    """Whether a call is torch's fully_shard as conversions write it: of a model or a layer, on a mesh or not."""
    named = script.qualified(call.func) == FULLY_SHARD and len(call.args) == 1
    return named and {word.arg for word in call.keywords} <= {"mesh"}


def _divides(script: Script, node: ast.stmt) -> bool:
    """Whether a statement divides a model, or each of its layers, or makes the mesh of the CPU for that."""
    if isinstance(node, ast.For):
        return ast.unparse(node.target) == "layer" and len(node.body) == 1 and _divides(script, node.body[0])
    if isinstance(node, ast.Expr):
        return isinstance(node.value, ast.Call) and _shards(script, node.value)
    made = node.value if isinstance(node, ast.Assign) else None
    if not isinstance(made, ast.Call) or script.qualified(made.func) != _MESH or len(made.args) != 2:
        return False
    size = made.args[1]
    return isinstance(size, ast.Tuple) and len(size.elts) == 1 and is_world_size(script, size.elts[0])


def _divided_again(script: Script, call: ast.Call, model: str) -> Iterator[Edit]:
    """Take out the statement above that leaves a model in its parts, for these to be loaded."""
    statement = script.statement(call)
    for before, after in itertools.pairwise(script.block(statement)):
        if after is statement and ast.unparse(before) == f"{model}.reshard()":
            yield Delete(before, "")


RULE = Rule(
    id="DDP711",
    title="Leave the model whole",
    why="""\
The inverse of DDP619: one process has all of the model, which its state says as it is.""",
    before="""\
import os
import sys

import torch
import torch.distributed as dist
from torch.distributed.checkpoint.state_dict import StateDictOptions, get_model_state_dict
from torch.distributed.device_mesh import init_device_mesh
from torch.distributed.fsdp import fully_shard
from torch.utils.data import DataLoader, TensorDataset
from torch.utils.data.distributed import DistributedSampler

dist.init_process_group("gloo")
if dist.get_rank() != 0:
    sys.stdout = open(os.devnull, "w")  # rank 0 prints
torch.manual_seed(0)

dataset = TensorDataset(torch.rand(64, 4), torch.rand(64, 1))
loader = DataLoader(
    dataset,
    batch_size=8 // dist.get_world_size(),
    sampler=DistributedSampler(dataset, shuffle=True),
)
model = torch.nn.Linear(4, 1)
for tensor in model.state_dict().values():
    dist.broadcast(tensor, 0)
mesh = init_device_mesh("cpu", (dist.get_world_size(),))
fully_shard(model, mesh=mesh)
optimizer = torch.optim.Adam(model.parameters(), lr=1e-3)
for x, y in loader:
    loss = torch.nn.functional.mse_loss(model(x), y)
    optimizer.zero_grad()
    loss.backward()
    optimizer.step()
state = get_model_state_dict(model, options=StateDictOptions(full_state_dict=True, cpu_offload=True))
if dist.get_rank() == 0:
    torch.save(state, "last.pt")
dist.destroy_process_group()
""",
    after="""\
import torch
from torch.utils.data import DataLoader, TensorDataset

torch.manual_seed(0)

dataset = TensorDataset(torch.rand(64, 4), torch.rand(64, 1))
loader = DataLoader(dataset, batch_size=8, shuffle=True)
model = torch.nn.Linear(4, 1)
optimizer = torch.optim.Adam(model.parameters(), lr=1e-3)
for x, y in loader:
    loss = torch.nn.functional.mse_loss(model(x), y)
    optimizer.zero_grad()
    loss.backward()
    optimizer.step()
state = model.state_dict()
torch.save(state, "last.pt")
""",
    check=check,
    target="none",
)
