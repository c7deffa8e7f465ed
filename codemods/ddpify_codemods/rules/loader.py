"""DDP109: each process loads its own rows of every batch."""

from __future__ import annotations

import ast
from collections.abc import Iterator

from ..facts.script import Script
from ..rule import Edit, Finding, Replace, ReplaceImport, Rule
from ..targets import Target

_LOADERS = {"torch.utils.data.DataLoader", "torch.utils.data.dataloader.DataLoader"}
# Methods of TensorBoard and visdom writers, which exist on rank 0 alone and would wait there for the others' rows.
_SHOWS_BATCHES = {"add_image", "add_images", "add_graph", "add_embedding", "add_video", "images", "image"}
# Drawn from in __getitem__, these would go on differently on each rank; the runtime cannot watch them.
_GENERATORS = {"numpy.random.default_rng", "numpy.random.RandomState", "random.Random"}
_REMEDY = "every process loads whole batches and takes its rows of them: right, but slower"
_MESSAGE = "load only this rank's rows of each batch"


def check(script: Script, target: Target) -> Iterator[Edit | Finding]:
    """Take the DataLoader of ddpify_runtime instead of torch's, where one is made."""
    uses = [node for node in script.nodes if _is_loader(script, node)]
    bases = [node for node in uses if isinstance(script.parents[node], ast.ClassDef)]
    if bases:
        line = script.statement(bases[0]).lineno
        yield Finding(RULE.id, "note", line, "a class is derived from DataLoader: its loaders stay torch's", _REMEDY)
        return
    made = [node for node in uses if _is_made(script, node)]
    for call in script.find(ast.Call):
        reason = _reason_for_whole_batches(script, call)
        if made and reason:
            line = script.statement(call).lineno
            yield Finding(RULE.id, "note", line, f"{reason}: its loaders stay torch's", _REMEDY)
            return
    for node in made:
        if isinstance(node, ast.Attribute) or (isinstance(node, ast.Name) and _is_star_import(script, node)):
            yield Replace(node, "DataLoader", _MESSAGE, ("DataLoader",))
    if any(isinstance(node, ast.Name) for node in made):
        for statement in script.find(ast.ImportFrom):
            for alias in statement.names:
                if f"{statement.module}.{alias.name}" in _LOADERS:
                    yield ReplaceImport(statement, alias.name, _MESSAGE)


def _is_loader(script: Script, node: ast.AST) -> bool:
    if not isinstance(node, (ast.Name, ast.Attribute)) or not isinstance(node.ctx, ast.Load):
        return False
    return script.qualified(node) in _LOADERS or _is_star_import(script, node)


def _is_star_import(script: Script, node: ast.AST) -> bool:
    is_name = isinstance(node, ast.Name) and node.id == "DataLoader" and node.id not in script.imported
    return is_name and "torch.utils.data" in script.star_imports and "DataLoader" not in script.defined


def _reason_for_whole_batches(script: Script, call: ast.Call) -> str:
    name = script.qualified(call.func)
    if name in _GENERATORS:
        return f"a generator of its own ({name}) may be drawn from while samples are loaded"
    if isinstance(call.func, ast.Attribute) and call.func.attr in _SHOWS_BATCHES and not name.startswith("torch"):
        return f"{call.func.attr} may need a whole batch on rank 0"
    return ""


def _is_made(script: Script, node: ast.AST) -> bool:
    """Whether a loader is built here: called, or handed on to be called; not named in a check or an annotation."""
    parent = script.parents[node]
    if isinstance(parent, ast.Call):
        return parent.func is node or script.qualified(parent.func) not in ("isinstance", "issubclass")
    return isinstance(parent, (ast.Assign, ast.keyword, ast.IfExp, ast.Return))


RULE = Rule(
    id="DDP109",
    title="Load each row once",
    why="""Every process draws the same global batches, in the order that the single process would have drawn
(D1-D7, D9). torch's DataLoader would load all of their rows in every process; the one of ddpify_runtime, a
subclass, loads those that this process computes. Batch size, length and order stay what they were.""",
    before="""\
import torch
from torch.utils.data import DataLoader, TensorDataset

loader = DataLoader(TensorDataset(torch.rand(64, 4), torch.rand(64, 1)), batch_size=8, shuffle=True)
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
    destroy_process_group,
    init_process_group,
)
from torch.utils.data import TensorDataset

init_process_group("gloo")

loader = DataLoader(TensorDataset(torch.rand(64, 4), torch.rand(64, 1)), batch_size=8, shuffle=True)
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
    target="cpu",
)
