"""Which objects of a script record a run: a SummaryWriter, a visdom connection, a run of wandb."""

from __future__ import annotations

import ast
from collections.abc import Mapping
from functools import lru_cache

from .effects import effects
from .on_rank_zero import made_on_rank_zero, searches
from .script import KEPT, Script

_CLASSES = ("SummaryWriter", "Visdom", "FileWriter")
# What they say of themselves: windows and answers of a server, a folder.
_TELLS = frozenset({"log_dir", "logdir", "get_logdir"})


@lru_cache(maxsize=KEPT)
def loggers(script: Script) -> Mapping[str, tuple[ast.Call, ...]]:
    """The loggers of a file that have a name, and the calls that make them."""
    found: dict[str, tuple[ast.Call, ...]] = {}
    for call in effects(script):
        last = script.qualified(call.func).rpartition(".")[2]
        value: ast.AST = call
        if isinstance(chosen := script.parents[call], ast.IfExp) and ast.unparse(chosen.orelse) == "None":
            value = chosen  # if logs are wanted
        elif isinstance(chosen, ast.BoolOp) and isinstance(chosen.op, ast.And) and chosen.values[-1] is call:
            value = chosen  # `tensorboard and tensorboard.SummaryWriter()`
        parent = script.parents[value]
        named = isinstance(parent, ast.Assign) and len(parent.targets) == 1 and parent.value is value
        if named and (last.endswith(_CLASSES) or made_on_rank_zero(script, call)):
            assert isinstance(parent, ast.Assign)
            if isinstance(parent.targets[0], ast.Name | ast.Attribute):
                name = ast.unparse(parent.targets[0])
                found[name] = (*found.get(name, ()), call)
    return found


def tells(script: Script, made: ast.Call, name: str) -> bool:
    """Whether a method or attribute of a logger gives a text or a number, which rank 0 can send to the others."""
    last = script.qualified(made.func).rpartition(".")[2]
    return last == "Visdom" or (last == "SummaryWriter" and name in _TELLS)


def only_records(script: Script, made: ast.Call) -> bool:
    """Whether a logger only takes notes, so that the other ranks can have something in its place."""
    return script.qualified(made.func).endswith(_CLASSES) or not searches(script, made)
