"""How an eager DDP script gets its processes: torch.multiprocessing.spawn, or torchrun."""

from __future__ import annotations

import ast
from collections.abc import Iterator
from dataclasses import dataclass
from functools import lru_cache

from .bindings import arguments
from .header import main_guard
from .origins import passed
from .script import KEPT, Script

SPAWN = "torch.multiprocessing.spawn"


@dataclass(frozen=True)
class Spawn:
    """One call of torch.multiprocessing.spawn.

    function: what it starts. given: the elements of `args`. processes: `nprocs`, None where it is not given.
    workers: the functions of this file that it may start. plain: whether all of its arguments are understood.
    """

    call: ast.Call
    function: ast.expr
    given: tuple[ast.expr, ...]
    processes: ast.expr | None
    workers: tuple[ast.FunctionDef, ...]
    plain: bool


@lru_cache(maxsize=KEPT)
def spawns(script: Script) -> tuple[Spawn, ...]:
    """The calls of torch.multiprocessing.spawn in a file."""
    return tuple(_spawn(script, call) for call in script.find(ast.Call) if script.qualified(call.func) == SPAWN)


def _spawn(script: Script, call: ast.Call) -> Spawn:
    names = ("fn", "args", "nprocs", "join", "daemon", "start_method")
    options = dict(zip(names, call.args, strict=False))
    options |= {keyword.arg: keyword.value for keyword in call.keywords if keyword.arg}
    given = options.get("args")
    joined = all(_is(options.get(name), value) for name, value in (("join", True), ("daemon", False)))
    plain = (
        "fn" in options
        and (given is None or isinstance(given, ast.Tuple))
        and joined
        and _is(options.get("start_method"), "spawn")
        and all(keyword.arg for keyword in call.keywords)
        and not any(isinstance(node, ast.Starred) for node in ast.walk(call))
    )
    elements = tuple(given.elts) if isinstance(given, ast.Tuple) else ()
    function = options.get("fn", call.func)
    return Spawn(call, function, elements, options.get("nprocs"), tuple(_workers(script, function)), plain)


def _is(node: ast.expr | None, value: object) -> bool:
    return node is None or (isinstance(node, ast.Constant) and node.value == value)


def _workers(script: Script, function: ast.expr) -> Iterator[ast.FunctionDef]:
    if not isinstance(function, ast.Name):
        return
    scope = script.scope(function)
    handed_over = (
        passed(script, scope, function.id)
        if not isinstance(scope, ast.Module) and function.id in arguments(scope)
        else [function]
    )
    names = {node.id for node in handed_over if isinstance(node, ast.Name)}
    yield from (node for node in script.tree.body if isinstance(node, ast.FunctionDef) and node.name in names)


def starts_processes(script: Script) -> frozenset[str]:
    """The names of the functions in which processes are started, and of those that call them."""
    return leading_to(script, [spawn.call for spawn in spawns(script)])


def leading_to(script: Script, places: list[ast.Call]) -> frozenset[str]:
    """The names of the functions of a file in which some calls are, and of those that call them."""
    names = _functions_around(script, places)
    while True:
        calls = (call for call in script.find(ast.Call) if isinstance(call.func, ast.Name))
        callers = _functions_around(script, [call for call in calls if getattr(call.func, "id", "") in names])
        if callers <= names:
            return frozenset(names)
        names |= callers


def _functions_around(script: Script, calls: list[ast.Call]) -> set[str]:
    scopes = [script.scope(call) for call in calls]
    return {scope.name for scope in scopes if isinstance(scope, (ast.FunctionDef, ast.AsyncFunctionDef))}


def is_before_launch(script: Script, node: ast.AST) -> bool:
    """Whether a node runs before there are processes: outside of what is started, where no XLA device may be used."""
    scope = script.scope(node)
    if isinstance(scope, (ast.FunctionDef, ast.AsyncFunctionDef)):
        return scope.name in starts_processes(script)
    if any(isinstance(parent, ast.ClassDef) for parent in script.ancestors(node)):
        return False
    guard = main_guard(script.tree)
    return bool(spawns(script)) or guard is None or guard not in script.ancestors(node)


def torchrun_guard(script: Script) -> ast.If | None:
    """The main guard whose body every process of torchrun runs; None where there is none or it is not plain."""
    guard = main_guard(script.tree)
    return guard if script.is_entry and guard and not guard.orelse and not spawns(script) else None


def shared_names(script: Script, guard: ast.If) -> set[str]:
    """Names that the guard's block makes and that functions of the file read."""
    inside = {node for statement in guard.body for node in ast.walk(statement)}
    made = {node.id for node in inside if isinstance(node, ast.Name) and isinstance(node.ctx, ast.Store)}
    for node in inside:
        if isinstance(node, (ast.Import, ast.ImportFrom)):
            made |= {alias.asname or alias.name.split(".")[0] for alias in node.names}
    reads: dict[ast.FunctionDef | ast.AsyncFunctionDef, set[str]] = {}
    for node in script.find(ast.Name):
        scope = script.scope(node)
        if node.id not in made or not isinstance(node.ctx, ast.Load) or node in inside or isinstance(scope, ast.Module):
            continue
        reads.setdefault(scope, set()).add(node.id)
    return {name for scope, names in reads.items() for name in names - _bound_in(scope)}


def _bound_in(function: ast.FunctionDef | ast.AsyncFunctionDef) -> set[str]:
    """The parameters of a function, and the names to which it gives values."""
    names = (node for node in ast.walk(function) if isinstance(node, ast.Name))
    stored = {node.id for node in names if isinstance(node.ctx, ast.Store)}
    return stored | {node.arg for node in ast.walk(function.args) if isinstance(node, ast.arg)}
