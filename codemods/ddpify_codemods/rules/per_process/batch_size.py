"""DDP124: the batch size that the script says becomes that of each process."""

from __future__ import annotations

import ast
from collections.abc import Iterator

from ...facts.flow.options import options
from ...facts.script import Script
from ...rule import ChangeArgument, Edit, Finding, Replace, Rule
from ...targets import Target

_WORLD_SIZE = "get_world_size()"
_MESSAGE = "let each process have this many samples"


def check(script: Script, target: Target) -> Iterator[Edit | Finding]:
    """Make the batches of training loaders as many times as large as there are processes."""
    assert script.program is not None
    training = script.program.followed.found.training
    calls = {loader.call: None for loader in training if loader.script.path == script.path}
    if script.is_entry and not training:
        message = "no loader is known that feeds training, so no batch size can be that of each process"
        yield Finding(RULE.id, "refused", 1, message, "leave --batch-size per-process out")
    for call in sorted(calls, key=lambda each: each.lineno):
        yield from _enlarged(script, call)


def _enlarged(script: Script, call: ast.Call) -> Iterator[Edit | Finding]:
    words = {word.arg: word.value for word in call.keywords}
    size = call.args[1] if len(call.args) > 1 else words.get("batch_size")
    if size is not None and "get_world_size" in ast.unparse(size):
        return
    is_hidden = size is None and (None in words or options(script, call))
    if is_hidden or "batch_sampler" in words or any(isinstance(each, ast.Starred) for each in call.args[:2]):
        message = "the batch size of this training loader is not said in its call"
        yield Finding(RULE.id, "refused", call.lineno, message, "write batch_size=… there")
        return
    if size is None:
        yield ChangeArgument(call, "batch_size", _WORLD_SIZE, _MESSAGE, imports=("get_world_size",))
    else:
        yield Replace(size, f"{{}} * {_WORLD_SIZE}", _MESSAGE, imports=("get_world_size",))
    message = (
        "the batch size is that of each process: W of them train on batches W times as large, in W times fewer steps"
    )
    yield Finding(RULE.id, "warning", call.lineno, message, "adapt the learning rate, as a rule W times as large")


RULE = Rule(
    id="DDP124",
    title="Make the batch size that of each process",
    why="""\
In the exact style a batch is that of one process, which the ranks share: with many of them a small batch leaves devices
idle. `--batch-size per-process` keeps each device as full as one was. That is another training, with fewer and larger
steps (D5): what one process would do with a batch W times as large, and exactly that. Evaluations keep theirs.""",
    before="""\
import torch
from torch.utils.data import DataLoader, TensorDataset

data = TensorDataset(torch.rand(64, 4), torch.rand(64, 1))
loader = DataLoader(data, batch_size=8, shuffle=True)
model = torch.nn.Linear(4, 1)
optimizer = torch.optim.SGD(model.parameters(), lr=0.1)
for x, y in loader:
    optimizer.zero_grad()
    torch.nn.functional.mse_loss(model(x), y).backward()
    optimizer.step()
""",
    after="""\
import torch
from ddpify_runtime import (
    DataLoader,
    DistributedDataParallel,
    DistributedSampler,
    destroy_process_group,
    get_world_size,
    init_process_group,
)
from torch.utils.data import TensorDataset

init_process_group("gloo")

data = TensorDataset(torch.rand(64, 4), torch.rand(64, 1))
loader = DataLoader(
    data,
    batch_size=8 * get_world_size(),
    sampler=DistributedSampler(data, shuffle=True),
)
model = torch.nn.Linear(4, 1)
model = DistributedDataParallel(model)
optimizer = torch.optim.SGD(model.parameters(), lr=0.1)
for x, y in loader:
    optimizer.zero_grad()
    torch.nn.functional.mse_loss(model(x), y).backward()
    optimizer.step()

destroy_process_group()
""",
    check=check,
    option="per_process",
    target="cpu",
)
