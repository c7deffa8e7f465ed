"""Which objects of a script record a run: a SummaryWriter, a visdom connection, a run of wandb."""

from __future__ import annotations

import ast
from collections.abc import Iterator, Mapping
from functools import lru_cache

from .effects import effects
from .on_rank_zero import made_on_rank_zero, searches
from .script import KEPT, Script

_CLASSES = ("SummaryWriter", "Visdom", "FileWriter")
# What they say of themselves: windows and answers of a server, a folder.
_TELLS = frozenset({"log_dir", "logdir", "get_logdir"})
_TELLS_OF_RUNS = frozenset({"name", "id", "dir", "path", "url", "get_url"})


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


def is_recorded(script: Script, node: ast.AST) -> bool:
    """Whether a logger is given to a statement that rank 0 alone runs: `wandb.log_artifact(artifact)`."""
    call = script.parents[node]
    alone = isinstance(call, ast.Call) and node in call.args and isinstance(script.parents[call], ast.Expr)
    return alone and any(call is each for each in effects(script))


def tells(script: Script, made: ast.Call, name: str) -> bool:
    """Whether a method or attribute of a logger gives a text or a number, which rank 0 can send to the others."""
    last = script.qualified(made.func).rpartition(".")[2]
    if begins_run(script, made):
        return name in _TELLS_OF_RUNS
    return last == "Visdom" or (last == "SummaryWriter" and name in _TELLS)


def begins_run(script: Script, call: ast.Call) -> bool:
    """Whether a call begins a run of wandb, which it can on other ranks, too: https://docs.wandb.ai/ref/python/init"""
    return script.qualified(call.func) == "wandb.init"


def told_by_run(script: Script) -> Iterator[ast.expr]:
    """Where the current run of wandb is asked for a text or a number: `wandb.run.name`."""
    for node in script.find(ast.Attribute):
        if (
            node.attr in _TELLS_OF_RUNS
            and isinstance(node.ctx, ast.Load)
            and script.qualified(node.value) == "wandb.run"
        ):
            parent = script.parents[node]
            yield parent if isinstance(parent, ast.Call) and parent.func is node else node


def only_records(script: Script, made: ast.Call) -> bool:
    """Whether a logger only takes notes, so that the other ranks can have something in its place."""
    return script.qualified(made.func).endswith(_CLASSES) or not searches(script, made)
