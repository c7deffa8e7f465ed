"""DDP213: modules of torch_xla from where they are now."""

from __future__ import annotations

import ast
from collections.abc import Iterator

from ...facts.older_xla import MOVED_MODULES, autocasts, is_in_sight, old_names
from ...facts.script import Script
from ...rule import Delete, DropImport, Edit, Finding, Insert, Rule
from ...targets import Target
from .older_xla_launch import rewritten


def check(script: Script, target: Target) -> Iterator[Edit | Finding]:
    """Import modules that moved from their new places, and drop imports that nothing needs any more."""
    gone = {old.node for old in old_names(script) if not old.by_hand}
    gone |= {call.func for call in autocasts(script) if is_in_sight(call)} | {*rewritten(script)}
    inside = {node for root in gone for node in ast.walk(root)}
    for statement in script.nodes:
        if isinstance(statement, (ast.Import, ast.ImportFrom)) and not getattr(statement, "level", 0):
            yield from _imported(script, statement, inside)


def _imported(script: Script, statement: ast.Import | ast.ImportFrom, inside: set[ast.AST]) -> Iterator[Edit | Finding]:
    kept = 0
    edits: list[Edit | Finding] = []
    for alias in statement.names:
        meaning = f"{statement.module}.{alias.name}" if isinstance(statement, ast.ImportFrom) else alias.name
        if _is_idle(script, statement, alias, meaning, inside):
            edits.append(DropImport(statement, alias.name, ""))
            continue
        old, new = _moved(statement, meaning)
        if new:
            code = _new_import(statement, alias, meaning, old, new)
            edits += [Insert(statement, code, f"{old} is {new} by now", "after"), DropImport(statement, alias.name, "")]
            continue
        kept += 1
        if old:
            remedy = "take it out: torch_xla 2.9 has nothing in its place"
            edits.append(Finding(RULE.id, "warning", statement.lineno, f"{old} is gone", remedy))
    if kept == 0:
        inserts = [edit for edit in edits if not isinstance(edit, DropImport)]
        edits = [*inserts, Delete(statement, "")]
    yield from edits


def _is_idle(script: Script, statement: ast.stmt, alias: ast.alias, meaning: str, inside: set[ast.AST]) -> bool:
    """Whether every use of an imported name is rewritten to something else."""
    name = alias.asname or (alias.name if isinstance(statement, ast.ImportFrom) else "")
    if not meaning.startswith("torch_xla.") or not name:
        return False
    uses = [node for node in script.find(ast.Name) if node.id == name]
    return bool(uses) and all(use in inside for use in uses)


def _moved(statement: ast.stmt, meaning: str) -> tuple[str, str]:
    for old, new in MOVED_MODULES.items():
        if meaning == old or (isinstance(statement, ast.ImportFrom) and meaning.startswith(f"{old}.")):
            return old, new
    return "", ""


def _new_import(statement: ast.stmt, alias: ast.alias, meaning: str, old: str, new: str) -> str:
    if meaning != old:
        name = f"{alias.name} as {alias.asname}" if alias.asname else alias.name
        return f"from {new} import {name}"
    bound = alias.asname or (alias.name if isinstance(statement, ast.ImportFrom) else "")
    return f"import {new} as {bound}" if bound else f"import {new}"


RULE = Rule(
    id="DDP213",
    title="Import torch_xla's modules from where they are",
    why="""\
`torch_xla.experimental.xla_sharding` is `torch_xla.distributed.spmd`, `torch_xla.experimental.pjrt_backend` is
`torch_xla.distributed.xla_backend`; others are gone, which is told. Imports that only served an old spelling go.
Told, and rewritten with `--modernize`.""",
    before="""\
import torch
import torch.distributed as dist
import torch_xla
import torch_xla.experimental.pjrt_backend
from torch_xla.core.xla_model import mark_step, optimizer_step

dist.init_process_group("xla", init_method="pjrt://")
model = torch.nn.Linear(4, 1).to(torch_xla.device())
optimizer = torch.optim.SGD(model.parameters(), lr=0.1)
model(torch.rand(8, 4).to(torch_xla.device())).mean().backward()
optimizer_step(optimizer)
mark_step()
""",
    after="""\
import torch
import torch.distributed as dist
import torch_xla
import torch_xla.distributed.xla_backend
from torch_xla.core.xla_model import optimizer_step

dist.init_process_group("xla", init_method="xla://")
model = torch.nn.Linear(4, 1).to(torch_xla.device())
optimizer = torch.optim.SGD(model.parameters(), lr=0.1)
model(torch.rand(8, 4).to(torch_xla.device())).mean().backward()
optimizer_step(optimizer)
torch_xla.sync()
""",
    check=check,
    target="xla",
)
