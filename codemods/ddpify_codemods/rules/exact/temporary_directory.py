"""DDP116: a temporary directory is rank 0's, and stays until all are done with it."""

from __future__ import annotations

import ast
from collections.abc import Iterator
from dataclasses import replace
from typing import Literal

from ...facts.script import Script
from ...rule import Edit, Finding, Insert, Rule
from ...targets import Target

_LEAVES = (ast.Return, ast.Raise, ast.Continue, ast.Break)
_SHARED = "use rank 0's temporary directory on every rank"
_KEPT = "keep the directory until all are done"


def check(script: Script, target: Target) -> Iterator[Edit | Finding]:
    """Let all processes use the directory of rank 0."""
    for item in shared(script, "broadcast({})", "barrier()"):
        runtime = ("barrier",) if isinstance(item, Insert) and item.message == _KEPT else ("broadcast",)
        yield replace(item, imports=runtime) if isinstance(item, Insert) else item


def shared(script: Script, broadcast: str, barrier: str) -> Iterator[Insert | Finding]:
    """Let all processes use the directory of rank 0, in the words of a style.

    broadcast: what gives all ranks what rank 0 has of `{}`. barrier: the statement that waits for all.
    """
    for call in script.find(ast.Call):
        if script.qualified(call.func) == "tempfile.TemporaryDirectory":
            item, block = script.parents[call], script.statement(call)
            if (
                isinstance(item, ast.withitem)
                and isinstance(block, ast.With)
                and isinstance(item.optional_vars, ast.Name)
            ):
                name, first, last = item.optional_vars.id, block.body[0], block.body[-1]
                yield Insert(first, f"{name} = {broadcast.format(name)}", _SHARED)
                where: Literal["before", "after"] = "before" if isinstance(last, _LEAVES) else "after"
                yield Insert(last, f"{barrier}  # all are done with {name}", _KEPT, where)
            else:
                message = "every process makes a temporary directory of its own, and only rank 0 writes files"
                remedy = "open it in a with statement: with TemporaryDirectory() as folder:"
                yield Finding(RULE.id, "warning", call.lineno, message, remedy)


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
