"""The number of processes that a spawning script hands to its functions."""

from __future__ import annotations

import ast
from functools import lru_cache

from .distribution import joins_process_group
from .launch import Spawn, spawns
from .origins import origins
from .script import KEPT, Script

_ARGUMENTS = ("backend", "init_method", "timeout", "world_size")  # of init_process_group


def is_world_size(script: Script, spawn: Spawn, argument: ast.expr) -> bool:
    """Whether an element of spawn's `args` is the number of processes; a constant is, where it is what the function
    joins the process group with, for another number may have the same value."""
    if spawn.processes is None or ast.unparse(argument) != ast.unparse(spawn.processes):
        return False
    if not isinstance(argument, ast.Constant):
        return True
    place = spawn.given.index(argument) + 1
    return bool(spawn.workers) and all(
        place < len(parameters(worker)) and _joins_with(script, worker, parameters(worker)[place])
        for worker in spawn.workers
    )


def _joins_with(script: Script, worker: ast.FunctionDef, parameter: str) -> bool:
    """Whether a parameter is the number of processes that a group is joined with."""
    for call in script.find(ast.Call):
        if joins_process_group(script, call):
            given = dict(zip(_ARGUMENTS, call.args, strict=False)) | {word.arg: word.value for word in call.keywords}
            ends = origins(script, given["world_size"]) if "world_size" in given else ()
            if any(isinstance(end, ast.Name) and end.id == parameter and script.scope(end) is worker for end in ends):
                return True
    return False


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
            if is_world_size(script, spawn, argument):
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
