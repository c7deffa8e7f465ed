"""DDP131: what was saved from the first GPU is loaded onto the GPU of each process."""

from __future__ import annotations

import ast
from collections.abc import Iterator

from ...facts.script import Script
from ...rule import ChangeArgument, Edit, Finding, Replace, Rule
from ...targets import Target

MESSAGE = "load tensors to this rank's device"


def check(script: Script, target: Target) -> Iterator[Edit | Finding]:
    """Say of each torch.load where tensors go."""
    for call in loads(script) if target.load_devices else ():
        yield ChangeArgument(call, "map_location", target.load_devices, MESSAGE)
    for value in spread(script) if target.load_devices else ():
        yield Replace(value, spread_with(target.load_devices), MESSAGE)


def spread(script: Script) -> Iterator[ast.expr]:
    """What the calls of torch.load get by `**` that may say where tensors go, and may not."""
    for call in script.find(ast.Call):
        words = [word for word in call.keywords if word.arg is None]
        placed = may_place(call) or any(word.arg == "map_location" for word in call.keywords)
        if script.qualified(call.func) != "torch.load" or placed or len(words) != 1:
            continue
        if not isinstance(words[0].value, ast.Dict):
            yield words[0].value


def spread_with(devices: str) -> str:
    """Such words, of which one says where tensors go if they do not."""
    return f'{{"map_location": {devices}, **{{}}}}'


def loads(script: Script) -> Iterator[ast.Call]:
    """The calls of torch.load that leave it to the file where its tensors go."""
    for call in script.find(ast.Call):
        placed = may_place(call) or any(word.arg in ("map_location", None) for word in call.keywords)
        if script.qualified(call.func) == "torch.load" and not placed:
            yield call


def may_place(call: ast.Call) -> bool:
    """Whether a call of torch.load may get map_location by its place: `load(path, "cpu")`, `load(*args)`."""
    return len(call.args) > 1 or any(isinstance(each, ast.Starred) for each in call.args)


RULE = Rule(
    id="DDP131",
    title="Load onto the own device",
    why="""\
`torch.load` puts tensors back onto the device that they were saved from: of a file that rank 0 wrote, every process
would get them on `cuda:0`, where the memory fills up and a model cannot take the batches of another rank (I8). What was
saved from host memory, such as data or the state of a generator, stays there.""",
    before="""\
import torch
from torch.utils.data import DataLoader, TensorDataset

loader = DataLoader(TensorDataset(*torch.load("data.pt")), batch_size=64, shuffle=True)
model = torch.nn.Linear(10, 1).cuda()
model.load_state_dict(torch.load("start.pt"))
optimizer = torch.optim.SGD(model.parameters(), lr=0.1)
for x, y in loader:
    loss = torch.nn.functional.mse_loss(model(x.cuda()), y.cuda())
    optimizer.zero_grad()
    loss.backward()
    optimizer.step()
torch.save(model, "model.pt")
model = torch.load("model.pt", weights_only=False)
""",
    after="""\
import torch
from ddpify_runtime import (
    DataLoader,
    DistributedDataParallel,
    DistributedSampler,
    destroy_process_group,
    get_local_rank,
    init_process_group,
    rank_zero_only,
)
from torch.utils.data import TensorDataset

init_process_group("nccl")

loader = DataLoader(
    dataset := TensorDataset(*torch.load("data.pt", map_location={"cuda:0": "cuda"})),
    batch_size=64,
    sampler=DistributedSampler(dataset, shuffle=True),
)
model = torch.nn.Linear(10, 1).cuda()
model.load_state_dict(torch.load("start.pt", map_location={"cuda:0": "cuda"}))
model = DistributedDataParallel(model, device_ids=[get_local_rank()])
optimizer = torch.optim.SGD(model.parameters(), lr=0.1)
for x, y in loader:
    loss = torch.nn.functional.mse_loss(model(x.cuda()), y.cuda())
    optimizer.zero_grad()
    loss.backward()
    optimizer.step()
rank_zero_only(torch.save)(model, "model.pt")
model = torch.load("model.pt", weights_only=False, map_location={"cuda:0": "cuda"})
destroy_process_group()
""",
    check=check,
    target="cuda",
)
