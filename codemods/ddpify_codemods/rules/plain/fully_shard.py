"""DDP619: with --strategy fsdp2, torch's fully_shard in place of DistributedDataParallel."""

from __future__ import annotations

import ast
from collections.abc import Iterator

from ...facts.flow.program import Program
from ...facts.flow.wrapping import wrapping
from ...facts.fully_sharded import BY_NUMBER, Sharded, blocks, sharded
from ...facts.optimizers import optimizers
from ...facts.script import Script
from ...rule import Edit, Finding, Insert, Replace, Rule
from ...targets import Target
from .own_decisions import decided_alone
from .words import is_here, program_of

_STATE_DICT = "from torch.distributed.checkpoint.state_dict import"
_FROM_RANK_ZERO = "StateDictOptions(full_state_dict=True, broadcast_from_rank0=True)"
_WHOLE = "StateDictOptions(full_state_dict=True, cpu_offload=True)"
_REMEDY = "leave out --strategy fsdp2: DistributedDataParallel keeps the model whole"


def check(script: Script, target: Target) -> Iterator[Edit | Finding]:
    """Shard the model before its optimizer is made, and put it together where it is saved."""
    program = program_of(script)
    if not program.fully_sharded:
        return
    yield from decided_alone(RULE.id, script, "a layer whose parts are put together")
    found = wrapping(program)
    for other, at in dict.fromkeys(found.at):
        if is_here(script, other):
            yield _wrapped(script, found.model, at, program, target)
    for optimizer in optimizers(script):
        name = script.qualified(optimizer.call.func) if isinstance(optimizer.call, ast.Call) else ""
        if not name.startswith("torch.optim.") or name.rpartition(".")[2] not in BY_NUMBER:
            message = "a rank keeps a part of each parameter, and this step may need all of one"
            yield Finding(RULE.id, "refused", optimizer.call.lineno, message, _REMEDY)
    for call in script.find(ast.Call):
        if script.qualified(call.func).endswith("GradScaler"):
            message = "GradScaler may skip a step on some ranks, which keep other parts of the gradients"
            yield Finding(RULE.id, "refused", call.lineno, message, "use bfloat16, which needs none")
        if script.qualified(call.func).startswith("torch.jit."):
            message = "fully_shard takes no compiled TorchScript"
            yield Finding(RULE.id, "refused", call.lineno, message, _REMEDY)
    for use in sharded(script, program):
        yield from _changed(script, use)


def _wrapped(script: Script, model: str, at: ast.stmt, program: Program, target: Target) -> Insert:
    lines = [f"for tensor in {model}.state_dict().values():", "    dist.broadcast(tensor, 0)"]
    modules = ("from torch.distributed.fsdp import fully_shard", *target.words.imports)
    mesh = ""
    if not target.is_accelerator:  # it would take GPUs, where there are any
        name = "mesh" if "mesh" not in {each.id for each in script.find(ast.Name)} else "cpu_mesh"
        lines.append(f'{name} = init_device_mesh("cpu", ({target.words.world_size},))')
        modules, mesh = (*modules, "from torch.distributed.device_mesh import init_device_mesh"), f", mesh={name}"
    for name in blocks(program, script):
        lines += [f"for layer in {model}.{name}:", f"    fully_shard(layer{mesh})"]
    code = "\n".join([*lines, f"fully_shard({model}{mesh})"])
    return Insert(at, code, f"divide {model} over the ranks", modules=modules)


def _changed(script: Script, use: Sharded) -> Iterator[Edit | Finding]:
    call = use.node
    if use.kind == "state_dict" and isinstance(call, ast.Call) and isinstance(call.func, ast.Attribute):
        imports = (f"{_STATE_DICT} StateDictOptions, get_model_state_dict",)
        template = f"get_model_state_dict({{}}, options={_WHOLE})"
        message = "put the model together on rank 0"
        yield Replace(call, template, message, modules=imports, parts=(call.func.value,))
    elif use.kind == "load_state_dict" and isinstance(call, ast.Call) and isinstance(call.func, ast.Attribute):
        imports = (f"{_STATE_DICT} StateDictOptions, set_model_state_dict",)
        template = f"set_model_state_dict({{}}, dict({{}}), options={_FROM_RANK_ZERO})"  # it changes what it is given
        parts = (call.func.value, call.args[0])
        # An evaluation leaves the model together, of which torch would not see the parts.
        yield Insert(script.statement(call), f"{ast.unparse(call.func.value)}.reshard()", "")
        yield Replace(call, template, "load each rank's part", modules=imports, parts=parts)
    else:
        yield Finding(RULE.id, "refused", call.lineno, use.kind, _REMEDY)


RULE = Rule(
    id="DDP619",
    title="Divide the model over the ranks",
    why="""\
Asked for by --strategy fsdp2: torch's `fully_shard` leaves each rank a part of every parameter, of its gradient and of
the optimizer's state, and puts a group of parameters together for the time of its forward and backward. The layers of a
`ModuleList` that the forward goes through are groups of their own, the rest of the model is one. All ranks call the
model equally often, so that evaluations are not divided. A checkpoint is put together on rank 0, with the keys of the
original. Refused: what else reads parameters, which are DTensors now; the optimizer's state in a checkpoint, which
torch gives by other keys than the original's.""",
    before="""\
import torch
from torch import nn
from torch.utils.data import DataLoader, TensorDataset


class Net(nn.Module):
    def __init__(self):
        super().__init__()
        self.layers = nn.ModuleList([nn.Linear(4, 4) for _ in range(3)])
        self.head = nn.Linear(4, 1)

    def forward(self, x):
        for layer in self.layers:
            x = layer(x).relu()
        return self.head(x)


dataset = TensorDataset(torch.rand(64, 4), torch.rand(64, 1))
loader = DataLoader(dataset, batch_size=8, shuffle=True)
model = Net()
optimizer = torch.optim.Adam(model.parameters(), lr=1e-3)
for x, y in loader:
    loss = nn.functional.mse_loss(model(x), y)
    optimizer.zero_grad()
    loss.backward()
    optimizer.step()
state = model.state_dict()
torch.save(state, "last.pt")
""",
    after="""\
import os
import sys

import torch
import torch.distributed as dist
from torch import nn
from torch.distributed.checkpoint.state_dict import StateDictOptions, get_model_state_dict
from torch.distributed.device_mesh import init_device_mesh
from torch.distributed.fsdp import fully_shard
from torch.utils.data import DataLoader, TensorDataset
from torch.utils.data.distributed import DistributedSampler

dist.init_process_group("gloo")
if dist.get_rank() != 0:
    sys.stdout = open(os.devnull, "w")  # rank 0 prints
torch.manual_seed(0)


class Net(nn.Module):
    def __init__(self):
        super().__init__()
        self.layers = nn.ModuleList([nn.Linear(4, 4) for _ in range(3)])
        self.head = nn.Linear(4, 1)

    def forward(self, x):
        for layer in self.layers:
            x = layer(x).relu()
        return self.head(x)


dataset = TensorDataset(torch.rand(64, 4), torch.rand(64, 1))
loader = DataLoader(
    dataset,
    batch_size=8 // dist.get_world_size(),
    sampler=DistributedSampler(dataset, shuffle=True),
)
model = Net()
for tensor in model.state_dict().values():
    dist.broadcast(tensor, 0)
mesh = init_device_mesh("cpu", (dist.get_world_size(),))
for layer in model.layers:
    fully_shard(layer, mesh=mesh)
fully_shard(model, mesh=mesh)
optimizer = torch.optim.Adam(model.parameters(), lr=1e-3)
for x, y in loader:
    loss = nn.functional.mse_loss(model(x), y)
    optimizer.zero_grad()
    loss.backward()
    optimizer.step()
state = get_model_state_dict(model, options=StateDictOptions(full_state_dict=True, cpu_offload=True))
if dist.get_rank() == 0:
    torch.save(state, "last.pt")
dist.destroy_process_group()
""",
    check=check,
    target="cpu",
    option="fully_sharded",
)
