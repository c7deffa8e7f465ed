"""DDP116: a temporary directory is rank 0's, and stays until all are done with it."""

from __future__ import annotations

import ast
from collections.abc import Iterator
from typing import Literal

from ...facts.script import Script
from ...rule import Edit, Finding, Insert, Rule
from ...targets import Target

_LEAVES = (ast.Return, ast.Raise, ast.Continue, ast.Break)


def check(script: Script, target: Target) -> Iterator[Edit | Finding]:
    """Let all processes use the directory of rank 0."""
    for call in script.find(ast.Call):
        if script.qualified(call.func) == "tempfile.TemporaryDirectory":
            item, block = script.parents[call], script.statement(call)
            if (
                isinstance(item, ast.withitem)
                and isinstance(block, ast.With)
                and isinstance(item.optional_vars, ast.Name)
            ):
                yield from _shared(block, item.optional_vars.id)
            else:
                message = "every process makes a temporary directory of its own, and only rank 0 writes files"
                remedy = "open it in a with statement: with TemporaryDirectory() as folder:"
                yield Finding(RULE.id, "warning", call.lineno, message, remedy)


def _shared(block: ast.With, name: str) -> Iterator[Insert]:
    first, last = block.body[0], block.body[-1]
    code = f"{name} = broadcast({name})"
    yield Insert(first, code, "use rank 0's temporary directory on every rank", imports=("broadcast",))
    where: Literal["before", "after"] = "before" if isinstance(last, _LEAVES) else "after"
    wait = f"barrier()  # all are done with {name}"
    yield Insert(last, wait, "keep the directory until all are done", where, ("barrier",))


RULE = Rule(
    id="DDP116",
    title="Share the temporary directory",
    why="""A temporary directory is another one in every process, but checkpoints are written by rank 0 only: the
others would not find them (I6, I10). All use rank 0's, and none leaves the block while another one may still read
there.""",
    before="""\
import os
from tempfile import TemporaryDirectory

import torch

model = torch.nn.Linear(4, 1)
optimizer = torch.optim.SGD(model.parameters(), lr=0.1)
with TemporaryDirectory() as folder:
    path = os.path.join(folder, "best.pt")
    for step in range(10):
        loss = model(torch.rand(8, 4)).mean()
        optimizer.zero_grad()
        loss.backward()
        optimizer.step()
        torch.save(model.state_dict(), path)
    model.load_state_dict(torch.load(path))
""",
    after="""\
import os
from tempfile import TemporaryDirectory

import torch
from ddpify_runtime import (
    DistributedDataParallel,
    barrier,
    broadcast,
    destroy_process_group,
    init_process_group,
    rank_zero_only,
)

init_process_group("gloo")

model = torch.nn.Linear(4, 1)
model = DistributedDataParallel(model)
optimizer = torch.optim.SGD(model.parameters(), lr=0.1)
with TemporaryDirectory() as folder:
    folder = broadcast(folder)
    path = os.path.join(folder, "best.pt")
    for step in range(10):
        loss = model(torch.rand(8, 4)).mean()
        optimizer.zero_grad()
        loss.backward()
        optimizer.step()
        rank_zero_only(torch.save)(model.state_dict(), path)
    model.load_state_dict(torch.load(path))
    barrier()  # all are done with folder

destroy_process_group()
""",
    check=check,
    target="cpu",
)
