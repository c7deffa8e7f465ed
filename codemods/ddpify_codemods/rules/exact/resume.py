"""DDP126: a run that was ended goes on at the step where its last checkpoint was written (--resume)."""

from __future__ import annotations

import ast
from collections.abc import Iterator

from ...facts.resume.obstacle import Obstacle
from ...facts.resume.plan import Part, plan
from ...facts.script import Script
from ...rule import Edit, Finding, Insert, Replace, Rule, Severity
from ...targets import Target
from .entry import after_init

_SECONDS = 600  # between two checkpoints
_CARRIED = ("carried",)


def check(script: Script, target: Target) -> Iterator[Edit | Finding]:
    """Insert the checkpoints' folder, what is restored, and what the loops carry."""
    if not target.resume or script.program is None:
        return
    found = plan(script.program.scripts)
    if found.obstacle is not None:
        yield from _findings(script, found.obstacle, "refused")
        return
    if script.is_entry:
        code = f'resume_from("{target.resume}", every_seconds={_SECONDS})'
        yield after_init(script, code, "go on from the last checkpoint", ("resume_from",))
    for part in found.parts:
        if part.per_epoch is not None:
            yield from _findings(script, part.per_epoch, "note")
        yield from _written(script, part)


def _written(script: Script, part: Part) -> Iterator[Edit]:
    """The edits for what one training has in this file."""
    outer = part.loops[0][0]
    for of, iterable in part.counted:
        if of.tree is script.tree:
            yield Replace(iterable, "counted({})", "count what next() takes", ("counted",))
    if outer.script.tree is script.tree:
        given = ", ".join([*part.start, *(f"{name}={name}" for name in part.objects)])
        start = f"{', '.join(part.start)} = " if part.start else ""
        yield Insert(outer.node, f"{start}restore({given})", "give back what training changes", imports=("restore",))
    for loop, carried in part.loops:
        if loop.script.tree is script.tree:
            if isinstance(loop.node, ast.For):
                yield Replace(loop.node.iter, "resumable({})", "pass over what is done", ("resumable",))
            else:
                yield Replace(loop.node.test, "goes_on({})", "begin in the round that was left", ("goes_on",))
            if carried:
                yield Insert(loop.node.body[0], _assignment(carried), "carry what the loop adds up", imports=_CARRIED)
    if outer.script.tree is script.tree and part.left is not None:
        code = _assignment(part.left) if part.left else "carried()"
        yield Insert(outer.node, code, "keep what this training has left", "after", imports=_CARRIED)


def _assignment(names: tuple[str, ...]) -> str:
    return f"{', '.join(names)} = carried({', '.join(names)})"


def _findings(script: Script, obstacle: Obstacle, severity: Severity) -> Iterator[Finding]:
    if obstacle.script.tree is script.tree:
        yield Finding(RULE.id, severity, obstacle.line, f"--resume: {obstacle.message}", obstacle.remedy)


RULE = Rule(
    id="DDP126",
    title="Go on after a failure",
    why="""\
With --resume DIR. A machine that fails ends the run on all of them. Rank 0 writes a checkpoint every ten minutes, and
the script, started again as it was or with another number of processes, goes on at that very step: models, optimizers,
schedulers, random numbers, the place in the epoch, what the loops have added up. Without the option nothing is
inserted. Loops whose items or variables cannot be followed are refused.""",
    before="""\
import torch
from torch.utils.data import DataLoader, TensorDataset

dataset = TensorDataset(torch.rand(64, 4), torch.rand(64, 1))
loader = DataLoader(dataset, batch_size=8, shuffle=True)
model = torch.nn.Linear(4, 1)
optimizer = torch.optim.SGD(model.parameters(), lr=0.1)
best = float("inf")
for epoch in range(3):
    total = 0.0
    for x, y in loader:
        optimizer.zero_grad()
        loss = torch.nn.functional.mse_loss(model(x), y)
        loss.backward()
        optimizer.step()
        total += loss.item()
    best = min(best, total)
    print(epoch, total, best)
""",
    after="""\
import torch
from ddpify_runtime import (
    DataLoader,
    DistributedDataParallel,
    DistributedSampler,
    carried,
    destroy_process_group,
    init_process_group,
    restore,
    resumable,
    resume_from,
)
from torch.utils.data import TensorDataset

init_process_group("gloo")
resume_from("checkpoints", every_seconds=600)

dataset = TensorDataset(torch.rand(64, 4), torch.rand(64, 1))
loader = DataLoader(dataset, batch_size=8, sampler=DistributedSampler(dataset, shuffle=True))
model = torch.nn.Linear(4, 1)
model = DistributedDataParallel(model)
optimizer = torch.optim.SGD(model.parameters(), lr=0.1)
best = float("inf")
restore(model=model, optimizer=optimizer)
for epoch in resumable(range(3)):
    best = carried(best)
    total = 0.0
    for x, y in resumable(loader):
        total = carried(total)
        optimizer.zero_grad()
        loss = torch.nn.functional.mse_loss(model(x), y)
        loss.backward()
        optimizer.step()
        total += loss.item()
    best = min(best, total)
    print(epoch, total, best)

destroy_process_group()
""",
    check=check,
    target="cpu",
    option="resume",
)
