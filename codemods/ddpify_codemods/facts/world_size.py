"""The number of processes that a spawning script hands to its functions."""

from __future__ import annotations

import ast
from functools import lru_cache

from .launch import Spawn, spawns
from .script import KEPT, Script

_MEANING = ("world_size", "worldsize", "nprocs", "ngpus", "n_gpus", "num_gpus", "num_processes", "size")


def is_world_size(spawn: Spawn, argument: ast.expr) -> bool:
    """Whether an element of spawn's `args` is the number of processes."""
    if spawn.processes is None or ast.unparse(argument) != ast.unparse(spawn.processes):
        return False
    if not isinstance(argument, ast.Constant):
        return True
    names = [parameters(worker)[spawn.given.index(argument) + 1 :][:1] for worker in spawn.workers]
    return bool(names) and all(name and name[0].startswith(_MEANING) for name in names)


def parameters(function: ast.FunctionDef) -> list[str]:
    """The names of a function's parameters, in their order."""
    return [argument.arg for argument in (*function.args.posonlyargs, *function.args.args)]


@lru_cache(maxsize=KEPT)
def parameters_of_world_size(script: Script) -> tuple[tuple[ast.FunctionDef, str], ...]:
    """The parameters that only carry the number of processes: of the functions that are started, and of those that
    do nothing with it but start them."""
    found: dict[tuple[ast.FunctionDef, str], None] = {}
    for spawn in spawns(script):
        for number, argument in enumerate(spawn.given, start=1):
            if is_world_size(spawn, argument):
                found |= {
                    (worker, parameters(worker)[number]): None
                    for worker in spawn.workers
                    if number < len(parameters(worker))
                }
        scope = script.scope(spawn.call)
        if not isinstance(scope, ast.FunctionDef) or not isinstance(spawn.processes, ast.Name):
            continue
        name = spawn.processes.id
        inside = set(ast.walk(spawn.call))
        uses = [node for node in ast.walk(scope) if isinstance(node, ast.Name) and node.id == name]
        if name in parameters(scope) and all(use in inside for use in uses):
            found[scope, name] = None
    return tuple(found)
