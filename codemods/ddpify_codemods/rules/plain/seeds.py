"""DDP609: all ranks draw the same random numbers before training begins."""

from __future__ import annotations

import ast
from collections.abc import Iterator

from ...facts.flow.draws import library_of
from ...facts.header import joined_after
from ...facts.script import Script
from ...rule import Edit, Finding, Insert, Rule
from ...targets import Target
from .words import module_name, program_of

_SEEDS = {
    "torch": ("torch.manual_seed", "torch.random.manual_seed"),
    "numpy": ("numpy.random.seed",),
    "random": ("random.seed",),
}
_ALL = (
    "pytorch_lightning.seed_everything",
    "lightning.seed_everything",
    "transformers.set_seed",
    "accelerate.utils.set_seed",
)
_CODE = {"torch": "{}.manual_seed(0)", "numpy": "{}.random.seed(0)", "random": "{}.seed(0)"}
_DRAWS = {"numpy": "numpy.random.", "random": "random."}


def check(script: Script, target: Target) -> Iterator[Edit | Finding]:
    """Seed the generators that the program draws from and does not seed itself."""
    if not script.is_entry:
        return
    scripts = program_of(script).scripts
    called = {other.qualified(call.func) for other in scripts for call in other.find(ast.Call)}
    if called & set(_ALL):
        return
    missing = []
    for library, names in _SEEDS.items():
        draws = library == "torch" or any(name.startswith(_DRAWS[library]) for name in called)
        if draws and (not called & set(names) or _draws_before(script, library)):
            missing.append(library)
    if missing:
        at, where = joined_after(script)
        names_there = {library: module_name(script, library, at, where == "after") for library in missing}
        code = "\n".join(_CODE[library].format(name) for library, name in names_there.items())
        modules = tuple(f"import {library}" for library, name in names_there.items() if library == name)
        message = "draw the same random numbers on all ranks"
        yield Insert(at, code, message, where, modules=modules, last=True)


def _draws_before(script: Script, library: str) -> bool:
    """Whether a script draws from a generator before it seeds it: `random.seed(random.randint(1, 10000))`."""
    calls = [call for call in script.find(ast.Call) if isinstance(script.scope(call), ast.Module)]
    seeded = [call.lineno for call in calls if script.qualified(call.func) in _SEEDS[library]]
    drawn = (call.lineno for call in calls if library_of(script.qualified(call.func)) == library)
    return bool(seeded) and min(drawn, default=min(seeded)) < min(seeded)


RULE = Rule(
    id="DDP609",
    title="Seed all ranks alike",
    why="""\
Ranks that are not seeded split and shuffle their data differently, and make other data (S1, D11): a sample of one
rank's training set would be in another's test set. A script that seeds its generators stays as it is.""",
    before="""\
import torch
from torch.utils.data import DataLoader, TensorDataset, random_split

dataset = TensorDataset(torch.rand(64, 4), torch.rand(64, 1))
train_set, test_set = random_split(dataset, [48, 16])
loader = DataLoader(train_set, batch_size=8, shuffle=True)
model = torch.nn.Linear(4, 1)
optimizer = torch.optim.SGD(model.parameters(), lr=0.1)
for x, y in loader:
    loss = torch.nn.functional.mse_loss(model(x), y)
    optimizer.zero_grad()
    loss.backward()
    optimizer.step()
""",
    after="""\
import os
import sys
import torch
import torch.distributed as dist
from torch.nn.parallel import DistributedDataParallel
from torch.utils.data import DataLoader, TensorDataset, random_split
from torch.utils.data.distributed import DistributedSampler

dist.init_process_group("gloo")
if dist.get_rank() != 0:
    sys.stdout = open(os.devnull, "w")  # rank 0 prints
torch.manual_seed(0)

dataset = TensorDataset(torch.rand(64, 4), torch.rand(64, 1))
train_set, test_set = random_split(dataset, [48, 16])
loader = DataLoader(
    train_set,
    batch_size=8 // dist.get_world_size(),
    sampler=DistributedSampler(train_set, shuffle=True),
)
model = torch.nn.Linear(4, 1)
ddp_model = DistributedDataParallel(model)
optimizer = torch.optim.SGD(model.parameters(), lr=0.1)
for x, y in loader:
    loss = torch.nn.functional.mse_loss(ddp_model(x), y)
    optimizer.zero_grad()
    loss.backward()
    optimizer.step()

dist.destroy_process_group()
""",
    check=check,
    target="cpu",
)
