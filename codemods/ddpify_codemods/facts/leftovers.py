"""Names of an eager script that only ever said which GPU a process has: on XLA nothing reads them any more."""

from __future__ import annotations

import ast
from collections.abc import Iterator

from .devices import inside_f_string
from .eager import WRAPPERS, is_move
from .script import Script

_DEVICE_ARGUMENTS = {"device_ids", "output_device", "device", "map_location"}
_DEVICE_CALLS = {"torch.cuda.set_device", "torch.device", "torch.cuda.device"}
_PURE = {"torch.cuda.device_count", "torch.device", "torch.distributed.get_rank", "int"}


def idle_assignments(script: Script) -> Iterator[ast.Assign]:
    """The assignments `device_id = rank % torch.cuda.device_count()` whose names only choose GPUs."""
    for statement in script.find(ast.Assign):
        name = statement.targets[0]
        if len(statement.targets) != 1 or not isinstance(name, ast.Name) or not _is_pure(script, statement.value):
            continue
        uses = [node for node in script.find(ast.Name) if node.id == name.id and isinstance(node.ctx, ast.Load)]
        mine = [use for use in uses if script.scope(use) is script.scope(name)]
        given = map(script.statement, script.stores[script.scope(name), name.id])
        if not all(isinstance(each, ast.Assign) and _is_pure(script, each.value) for each in given):
            continue  # it may be the CPU, or what is not seen here
        if mine and len(mine) == len(uses) and all(chooses_gpu(script, use) for use in mine):
            yield statement


def _is_pure(script: Script, value: ast.expr) -> bool:
    calls = [node for node in ast.walk(value) if isinstance(node, ast.Call)]
    names_gpu = any(isinstance(node, ast.Constant) and "cuda" in str(node.value) for node in ast.walk(value))
    counts = any(script.qualified(call.func) == "torch.cuda.device_count" for call in calls)
    return (names_gpu or counts) and all(script.qualified(call.func) in _PURE for call in calls)


def chooses_gpu(script: Script, use: ast.expr) -> bool:
    """Whether a name stands where a GPU is chosen, in a place that the conversion replaces."""
    if inside_f_string(script, use):
        return False
    for parent in script.ancestors(use):
        if isinstance(parent, ast.keyword):
            return parent.arg in _DEVICE_ARGUMENTS and _is_replaced(script, parent)
        if isinstance(parent, ast.Call):
            named = script.qualified(parent.func) in _DEVICE_CALLS | WRAPPERS
            return named or (is_move(parent) and use in parent.args)
        if not isinstance(parent, (ast.List, ast.Tuple)):
            return False
    return False


def _is_replaced(script: Script, keyword: ast.keyword) -> bool:
    call = script.parents[keyword]
    assert isinstance(call, ast.Call)
    return keyword.arg == "map_location" or script.qualified(call.func) in WRAPPERS
