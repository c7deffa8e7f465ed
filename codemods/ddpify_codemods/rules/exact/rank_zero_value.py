"""DDP106: one answer for all about files that the script writes."""

from __future__ import annotations

import ast
from collections.abc import Iterator

from ...facts.effects import effects, sample_code, under_rank_guard
from ...facts.own_methods import may_be_own
from ...facts.script import Script
from ...rule import Edit, Finding, Replace, Rule
from ...targets import Target

_FILE_CHECKS = {
    *("os.path.exists", "os.path.isfile", "os.path.isdir", "os.path.lexists", "os.path.getmtime"),
    *("os.listdir", "glob.glob"),
}
_PATH_CHECKS = {"exists", "is_file", "is_dir"}
_COMPREHENSIONS = (ast.ListComp, ast.SetComp, ast.DictComp, ast.GeneratorExp)


def check(script: Script, target: Target) -> Iterator[Edit | Finding]:
    """Let rank 0 answer for all where processes could get different answers."""
    if not effects(script):
        return
    per_sample = sample_code(script)
    for call in script.find(ast.Call):
        if not _checks_files(script, call) or _repeats(script, call):
            continue
        if call not in per_sample and not under_rank_guard(script, call):
            message = "let rank 0 look at the files, for all ranks"
            yield Replace(call.func, "rank_zero_value({})", message, ("rank_zero_value",))


def _checks_files(script: Script, call: ast.Call) -> bool:
    if isinstance(script.statement(call), (ast.Expr, ast.Assert)):
        return False
    if script.qualified(call.func) in _FILE_CHECKS:
        return True
    method = call.func.attr if isinstance(call.func, ast.Attribute) else ""
    return method in _PATH_CHECKS and not may_be_own(script, call.func) and not call.args


def _repeats(script: Script, call: ast.Call) -> bool:
    """Whether a check runs for each item of a comprehension: too often to communicate, and the items are the same."""
    child: ast.AST = call
    for parent in script.ancestors(call):
        if isinstance(parent, ast.comprehension) and child is not parent.iter:
            return True
        if isinstance(parent, _COMPREHENSIONS) and not isinstance(child, ast.comprehension):
            return True
        child = parent
    return False


RULE = Rule(
    id="DDP106",
    title="One answer about files",
    why="""Two processes that look whether a file exists, while the first of them writes it, get different answers
and then go different ways: one of them waits forever (I10). Rank 0 looks, and tells the others. A script that
writes nothing keeps its checks.""",
    before="""\
import os

import torch

model = torch.nn.Linear(4, 1)
if os.path.exists("model.pt"):
    model.load_state_dict(torch.load("model.pt"))
optimizer = torch.optim.SGD(model.parameters(), lr=0.1)
for step in range(10):
    loss = model(torch.rand(8, 4)).mean()
    optimizer.zero_grad()
    loss.backward()
    optimizer.step()
torch.save(model.state_dict(), "model.pt")
""",
    after="""\
import os

import torch
from ddpify_runtime import (
    DistributedDataParallel,
    destroy_process_group,
    init_process_group,
    rank_zero_only,
    rank_zero_value,
)

init_process_group("gloo")

model = torch.nn.Linear(4, 1)
if rank_zero_value(os.path.exists)("model.pt"):
    model.load_state_dict(torch.load("model.pt"))
model = DistributedDataParallel(model)
optimizer = torch.optim.SGD(model.parameters(), lr=0.1)
for step in range(10):
    loss = model(torch.rand(8, 4)).mean()
    optimizer.zero_grad()
    loss.backward()
    optimizer.step()
rank_zero_only(torch.save)(model.state_dict(), "model.pt")
destroy_process_group()
""",
    check=check,
    target="cpu",
)
