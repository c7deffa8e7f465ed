"""DDP704: training calls the model itself, which nothing wraps."""

from __future__ import annotations

import ast
from collections.abc import Iterator

from ...facts.plain_code import DIST, is_wrapped
from ...facts.script import Script
from ...rule import Delete, Edit, Finding, Replace, Rule
from ...targets import Target

_BROADCAST = "for buffer in {}:\n    dist.broadcast(buffer, 0)"
_SYNCHRONIZED = "torch.nn.SyncBatchNorm.convert_sync_batchnorm"
_REMEDY = "take it out first, or go back with version control"


def check(script: Script, target: Target) -> Iterator[Edit | Finding]:
    """Take DistributedDataParallel out, and call the model where its wrapper was."""
    names: dict[str, str] = {}
    for node in script.find(ast.Assign):
        if not is_wrapped(script, node):
            continue
        name, model = ast.unparse(node.targets[0]), ast.unparse(node.value.args[0])  # type: ignore[attr-defined]
        if name == model or names.setdefault(name, model) != model:
            message = f"{name} is the name of the wrapped model and of another one"
            yield Finding(RULE.id, "refused", node.lineno, message, _REMEDY)
            return
        yield Delete(node, f"leave {model} unwrapped")
    yield from _called(script, names)
    for statement in script.find(ast.stmt):
        if _sets_up(script, statement):
            yield Delete(statement, "leave out what the wrapped model needs")
    for attribute in script.find(ast.Attribute):
        if attribute.attr == "module" and isinstance(attribute.ctx, ast.Load) and not _is_imported(script, attribute):
            yield Replace(attribute, "{}", "the model is not wrapped", parts=(attribute.value,), bare=True)


def _called(script: Script, names: dict[str, str]) -> Iterator[Edit | Finding]:
    """Use the model in the place of its wrapper."""
    bound = {ast.unparse(each.targets[0]) for each in script.find(ast.Assign) if is_wrapped(script, each)}
    last = {name.rpartition(".")[2] for name in bound}
    for node in script.nodes:
        if isinstance(node, ast.arg) and node.arg in last:
            yield Finding(RULE.id, "refused", node.lineno, f"{node.arg} is a parameter too", _REMEDY)
        if not isinstance(node, ast.Name | ast.Attribute):
            continue
        text = ast.unparse(node)
        if text in names and isinstance(node.ctx, ast.Load):
            yield Replace(node, names[text], f"call {names[text]} itself")
        elif text.rpartition(".")[2] in last and not is_wrapped(script, script.parents[node]):
            yield Finding(RULE.id, "refused", node.lineno, f"{text} is used in a way of its own here", _REMEDY)


def _sets_up(script: Script, node: ast.stmt) -> bool:
    """Whether a statement is only for the wrapper: when it averages, and whose statistics BatchNorm has."""
    if isinstance(node, ast.For) and isinstance(node.iter, ast.Call) and script.imported.get("dist") == DIST:
        return ast.unparse(node) == _BROADCAST.format(ast.unparse(node.iter)) and ".buffers()" in ast.unparse(node.iter)
    if not isinstance(node, ast.Assign) or len(node.targets) != 1:
        return False
    target = node.targets[0]
    if isinstance(target, ast.Attribute) and target.attr == "require_backward_grad_sync":
        return True
    return ast.unparse(node) == f"{ast.unparse(target)} = {_SYNCHRONIZED}({ast.unparse(target)})"


def _is_imported(script: Script, node: ast.Attribute) -> bool:
    base: ast.expr = node
    while isinstance(base, ast.Attribute):
        base = base.value
    return isinstance(base, ast.Name) and base.id in script.imported


RULE = Rule(
    id="DDP704",
    title="Leave the model unwrapped",
    why="""\
The inverse of DDP602 and DDP615: one process has no gradients to average. The model keeps its name, and gets back the
places where its wrapper was called. Whether a `.module` was the wrapper's is settled by converting the result again:
what does not come back is refused (M1-M3).""",
    before="""\
import os
import sys

import torch
import torch.distributed as dist
from torch.nn.parallel import DistributedDataParallel
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
ddp_model = DistributedDataParallel(model)
optimizer = torch.optim.SGD(model.parameters(), lr=0.1)
for i, (x, y) in enumerate(loader):
    ddp_model.require_backward_grad_sync = (i + 1) % 4 == 0
    loss = torch.nn.functional.mse_loss(ddp_model(x), y) / 4
    loss.backward()
    if (i + 1) % 4 == 0:
        optimizer.step()
        optimizer.zero_grad()

dist.destroy_process_group()
""",
    after="""\
import torch
from torch.utils.data import DataLoader, TensorDataset

torch.manual_seed(0)

dataset = TensorDataset(torch.rand(64, 4), torch.rand(64, 1))
loader = DataLoader(dataset, batch_size=8, shuffle=True)
model = torch.nn.Linear(4, 1)
optimizer = torch.optim.SGD(model.parameters(), lr=0.1)
for i, (x, y) in enumerate(loader):
    loss = torch.nn.functional.mse_loss(model(x), y) / 4
    loss.backward()
    if (i + 1) % 4 == 0:
        optimizer.step()
        optimizer.zero_grad()
""",
    check=check,
    target="none",
)
