"""DDP114: names that are made of the time or of chance are the same for all processes."""

from __future__ import annotations

import ast
from collections.abc import Iterator

from ...facts.clock_names import names_something
from ...facts.devices import source
from ...facts.effects import sample_code, under_rank_guard
from ...facts.script import Script
from ...rule import Edit, Finding, Replace, Rule
from ...targets import Target

_UNIQUE = {"uuid.uuid1", "uuid.uuid4", "tempfile.mkdtemp", "tempfile.mktemp"}


def check(script: Script, target: Target) -> Iterator[Edit | Finding]:
    """Take rank 0's time or number where it becomes a name."""
    per_sample = sample_code(script)
    for call in script.find(ast.Call):
        named = script.qualified(call.func) in _UNIQUE or names_something(script, call)
        if named and call not in per_sample and not under_rank_guard(script, call):
            yield _shared(script, call)


def _shared(script: Script, call: ast.Call) -> Replace | Finding:
    name = ast.unparse(call.func)
    if source(script, call.func).strip() == name:
        message = f"take rank 0's {name} on every rank"
        return Replace(call.func, "rank_zero_value({})", message, ("rank_zero_value",))
    # Python 3.11 misplaces what stands in an f-string of several lines.
    remedy = f"give {name}() a name of its own in a line before"
    return Finding(RULE.id, "warning", call.lineno, f"{name}() differs between the processes", remedy)


RULE = Rule(
    id="DDP114",
    title="Take rank 0's names",
    why="""A directory named after the time, a random number or a process is another one in every process (I6). Rank
0 makes the name and tells the others. Times that are only measured stay as they are.""",
    before="""\
import time

import torch

run = "runs-" + time.strftime("%Y%m%d-%H%M%S")
model = torch.nn.Linear(4, 1)
optimizer = torch.optim.SGD(model.parameters(), lr=0.1)
start = time.time()
for step in range(10):
    loss = model(torch.rand(8, 4)).mean()
    optimizer.zero_grad()
    loss.backward()
    optimizer.step()
torch.save(model.state_dict(), run + ".pt")
print(time.time() - start)
""",
    after="""\
import time

import torch
from ddpify_runtime import (
    DistributedDataParallel,
    destroy_process_group,
    init_process_group,
    rank_zero_only,
    rank_zero_value,
)

init_process_group("gloo")

run = "runs-" + rank_zero_value(time.strftime)("%Y%m%d-%H%M%S")
model = torch.nn.Linear(4, 1)
model = DistributedDataParallel(model)
optimizer = torch.optim.SGD(model.parameters(), lr=0.1)
start = time.time()
for step in range(10):
    loss = model(torch.rand(8, 4)).mean()
    optimizer.zero_grad()
    loss.backward()
    optimizer.step()
rank_zero_only(torch.save)(model.state_dict(), run + ".pt")
print(time.time() - start)
destroy_process_group()
""",
    check=check,
    target="cpu",
)
