"""DDP702: the one process does what rank 0 did."""

from __future__ import annotations

import ast
from collections.abc import Iterator

from ...facts.plain_code import (
    ends_run,
    is_call,
    is_elif,
    is_every_wth,
    is_every_wth_batch,
    is_other_rank,
    is_rank_0,
    is_stand_in,
    is_statement,
    is_world_size,
)
from ...facts.script import Script
from ...rule import ChangeArgument, Delete, Edit, Finding, Replace, Rule, Unguard
from ...targets import Target

_ATOMS = (ast.Name, ast.Attribute, ast.Call, ast.Constant, ast.Subscript)
_ALL = "the one process has all of it"
_WAITS = "one process waits for nobody"
_MESSAGE = "the one process is rank 0"


def check(script: Script, target: Target) -> Iterator[Edit | Finding]:
    """Take guards, barriers and null devices out; the rank is 0 and the number of processes 1 where else one asks."""
    asked: set[ast.AST] = set()
    for node in script.nodes:
        if isinstance(node, ast.If) and is_rank_0(script, node.test) and not node.orelse and not is_elif(script, node):
            asked.update(ast.walk(node.test))
            waits = all(is_statement(script, each, "barrier") for each in node.body)
            yield Delete(node, _WAITS) if waits else Unguard(node, _MESSAGE)
        elif ends_run(script, node):
            asked.update(ast.walk(node))
            yield Delete(node, _WAITS)  # type: ignore[arg-type]
        elif is_stand_in(script, node):
            yield Delete(node, "the one process has the logger")  # type: ignore[arg-type]
        elif isinstance(node, ast.IfExp) and node not in asked and is_rank_0(script, node.test):
            asked.update(ast.walk(node.test))
            yield Replace(node, "{}", _MESSAGE, parts=(node.body,), bare=is_bare(script, node, node.body))
        elif is_statement(script, node, "barrier"):
            yield Delete(node, _WAITS)  # type: ignore[arg-type]
        elif isinstance(node, ast.BinOp) and is_world_size(script, node.right) and _is_whole(script, node):
            asked.add(node.right)
            yield Replace(node, "{}", _ALL, parts=(node.left,), bare=is_bare(script, node, node.left))
        elif isinstance(node, ast.AugAssign) and is_world_size(script, node.value) and _is_whole(script, node):
            asked.add(node.value)
            yield Delete(node, _ALL)
        elif isinstance(node, ast.Call) and (hides := _hidden_bar(script, node)) is not None:
            asked.update(ast.walk(hides))
            yield ChangeArgument(node, "", "", _MESSAGE, str(hides.arg))
        elif is_every_wth(script, node) or is_every_wth_batch(script, node):
            asked.update(ast.walk(node))  # DDP703's
    for call in script.find(ast.Call):
        if call not in asked and (is_call(script, call, "get_rank") or is_world_size(script, call)):
            yield Replace(call, str(int(is_world_size(script, call))), _MESSAGE)


def is_bare(script: Script, node: ast.expr, part: ast.expr) -> bool:
    """Whether a part can stand in the place of the whole without parentheses."""
    parent = script.parents[node]
    if isinstance(part, _ATOMS) or isinstance(parent, ast.Call | ast.keyword | ast.Assign | ast.Return):
        return not isinstance(part, ast.NamedExpr)
    if isinstance(part, ast.Compare) and isinstance(parent, ast.If | ast.While | ast.BoolOp):
        return True
    return isinstance(part, ast.BinOp) and isinstance(parent, ast.Tuple | ast.List | ast.FormattedValue)


def _is_whole(script: Script, node: ast.BinOp | ast.AugAssign) -> bool:
    """Whether a number stays what it is when it is multiplied with 1, or divided: a batch size has no fraction."""
    if not isinstance(node.op, ast.FloorDiv):
        return isinstance(node.op, ast.Mult)
    if isinstance(node, ast.AugAssign):
        return isinstance(node.target, ast.Subscript) and ast.unparse(node.target.slice) == "'batch_size'"
    parent = script.parents[node]
    if isinstance(parent, ast.Call):
        sampled = any(word.arg == "sampler" for word in parent.keywords)  # `super().__init__(…)` of a loader's class
        of_loader = parent.args[1:2] == [node] and (sampled or script.qualified(parent.func).endswith("DataLoader"))
        return of_loader or ast.unparse(node) in _batch_sizes(script)  # `noise(BATCH // dist.get_world_size())`
    is_compared = isinstance(parent, ast.Compare) and len(parent.ops) == 1  # len(x) == batch_size
    return is_compared or (isinstance(parent, ast.keyword) and parent.arg == "batch_size")


def _batch_sizes(script: Script) -> set[str]:
    """What loaders of a file are told for a rank's part of a batch."""
    return {ast.unparse(word.value) for word in script.find(ast.keyword) if word.arg == "batch_size"}


def _hidden_bar(script: Script, call: ast.Call) -> ast.keyword | None:
    """The argument by which a bar of tqdm, or of progress, is shown on rank 0 alone."""
    name = script.qualified(call.func)
    for word in call.keywords:
        if name.startswith("tqdm") and word.arg == "disable" and is_other_rank(script, word.value):
            return word
        is_chosen = isinstance(word.value, ast.IfExp) and is_rank_0(script, word.value.test)
        if name.startswith("progress.") and word.arg == "file" and is_chosen:
            return word
    return None


RULE = Rule(
    id="DDP702",
    title="Do what rank 0 did",
    why="""\
The inverse of DDP606, DDP607, DDP608 and DDP612, and of the batch size in DDP603. Each line is what it is for one
process: rank 0 of one, which waits for nobody. Folders may go on to be there already, as the conversion allows it.""",
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

os.makedirs("runs", exist_ok=True)
dataset = TensorDataset(torch.rand(64, 4), torch.rand(64, 1))
loader = DataLoader(
    dataset,
    batch_size=8 // dist.get_world_size(),
    sampler=DistributedSampler(dataset, shuffle=True),
)
model = torch.nn.Linear(4, 1)
ddp_model = DistributedDataParallel(model)
optimizer = torch.optim.SGD(model.parameters(), lr=0.1)
for x, y in loader:
    loss = torch.nn.functional.mse_loss(ddp_model(x), y)
    optimizer.zero_grad()
    loss.backward()
    optimizer.step()
with open("runs/log.txt" if dist.get_rank() == 0 else os.devnull, "w") as log:
    log.write("done")
if dist.get_rank() == 0:
    torch.save(model.state_dict(), "runs/model.pt")
dist.destroy_process_group()
""",
    after="""\
import os

import torch
from torch.utils.data import DataLoader, TensorDataset

torch.manual_seed(0)

os.makedirs("runs", exist_ok=True)
dataset = TensorDataset(torch.rand(64, 4), torch.rand(64, 1))
loader = DataLoader(dataset, batch_size=8, shuffle=True)
model = torch.nn.Linear(4, 1)
optimizer = torch.optim.SGD(model.parameters(), lr=0.1)
for x, y in loader:
    loss = torch.nn.functional.mse_loss(model(x), y)
    optimizer.zero_grad()
    loss.backward()
    optimizer.step()
with open("runs/log.txt", "w") as log:
    log.write("done")
torch.save(model.state_dict(), "runs/model.pt")
""",
    check=check,
    target="none",
)
