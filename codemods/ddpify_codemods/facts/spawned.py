"""What a script that starts its own processes does outside of them, and how many of them there are."""

from __future__ import annotations

import ast
from collections.abc import Iterator

from .effects import effects
from .launch import Spawn, is_before_launch, spawns, starts_processes
from .origins import origins, sources
from .script import Script
from .world_size import is_world_size, parameters

_COUNTED_BY = frozenset({"torch", "os", "int", "min", "max"})


def counts(script: Script, spawn: Spawn) -> list[ast.expr] | None:
    """The expressions that say how many processes are started, which ask the machine or are written down; None where
    something else says it, such as an option of the command line."""
    if spawn.processes is None:
        return None
    found = list(dict.fromkeys(each for each in origins(script, spawn.processes) if not sources(script, each)))
    for each in found:
        names = {node.id for node in ast.walk(each) if isinstance(node, ast.Name)}
        if not names <= _COUNTED_BY or isinstance(each, ast.Attribute):
            return None
    return found or None


def is_index(script: Script, spawn: Spawn, node: ast.expr) -> bool:
    """Whether a number is the index that spawn hands to the function it starts."""
    return _is_parameter(script, spawn, node, 0)


def is_number_started(script: Script, spawn: Spawn, node: ast.expr) -> bool:
    """Whether a number is that of the processes: the one that spawn hands over, or what says it to spawn."""
    ends = {each for each in origins(script, node) if not sources(script, each)}
    if ends and ends <= {*(counts(script, spawn) or ())}:
        return True
    places = [place for place, each in enumerate(spawn.given, start=1) if is_world_size(script, spawn, each)]
    return any(_is_parameter(script, spawn, node, place) for place in places)


def _is_parameter(script: Script, spawn: Spawn, node: ast.expr, place: int) -> bool:
    ends = [each for each in origins(script, node) if not sources(script, each)]
    names = {(worker, parameters(worker)[place]) for worker in spawn.workers if place < len(parameters(worker))}
    return bool(ends) and all(isinstance(each, ast.Name) and (script.scope(each), each.id) in names for each in ends)


def done_once(script: Script) -> Iterator[ast.stmt]:
    """What the process that starts the others does alone, and several may not do at a time: files that it writes, and
    all that comes after they have ended."""
    for call in effects(script):
        scope = script.scope(call)
        inside = not isinstance(scope, ast.Module) or script.is_entry
        if inside and is_before_launch(script, call) and _is_below(script, call):
            yield script.statement(call)
    for statement in script.find(ast.stmt):
        if _starts(script, statement) and is_before_launch(script, statement):
            for name in ("body", "orelse", "finalbody"):
                block = getattr(script.parents[statement], name, None)
                if isinstance(block, list) and statement in block:
                    after = block[block.index(statement) + 1 :]
                    yield from (each for each in after if not _starts(script, each) and not _only_tells(script, each))


def _is_below(script: Script, node: ast.AST) -> bool:
    """Whether a node is in a function, or below an `if` such as the main guard, which spawned processes do not run."""
    return any(isinstance(each, ast.FunctionDef | ast.If) for each in script.ancestors(node))


def _starts(script: Script, statement: ast.stmt) -> bool:
    """Whether a statement starts processes, itself or by a function of the file."""
    if isinstance(statement, ast.FunctionDef | ast.AsyncFunctionDef | ast.ClassDef):
        return False
    calls = {spawn.call for spawn in spawns(script)}
    names = starts_processes(script)
    return any(
        node in calls or (isinstance(node, ast.Call) and isinstance(node.func, ast.Name) and node.func.id in names)
        for node in ast.walk(statement)
    )


def _only_tells(script: Script, statement: ast.stmt) -> bool:
    """Whether a statement prints, of names and of the time alone."""
    if isinstance(statement, ast.Pass | ast.Return):
        return True
    calls = [script.qualified(node.func) for node in ast.walk(statement) if isinstance(node, ast.Call)]
    quiet = all(name in ("print", "str", "round", "len") or name.startswith("time.") for name in calls)
    return isinstance(statement, ast.Expr) and quiet
