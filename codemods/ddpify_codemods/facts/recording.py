"""What is recorded for the devices and not run yet, and what reads it."""

from __future__ import annotations

import ast
from collections.abc import Callable, Iterator, Mapping
from functools import lru_cache
from typing import TypeAlias

from .distributed import is_rank, may_depend_on_rank
from .eager import is_module, is_move, is_wrapper_call
from .script import KEPT, Script
from .updates import takes_gradients

_READS = frozenset({"item", "cpu", "tolist", "numpy", "state_dict", "save", "print", "float"})
_GROUP = "torch.distributed."
_ASKS = ("get_rank", "get_world_size", "is_initialized", "is_available", "init_process_group", "destroy_process_group")
_LIBRARIES = ("torch.", "torch_xla.")
_DEPTH = 4  # calls of functions of the program
_Function: TypeAlias = ast.FunctionDef | ast.AsyncFunctionDef


def reads_values(script: Script, statements: list[ast.stmt], depth: int = _DEPTH) -> bool:
    """Whether statements may read back what a device has computed, or leave the others alone with the rest."""
    return _reads(script, statements, depth, _files(script))


def _reads(script: Script, statements: list[ast.stmt], depth: int, files: tuple[Script, ...]) -> bool:
    for node in _inside(statements):
        if isinstance(node, (ast.Return, ast.Continue, ast.Break)):
            return True
        if isinstance(node, ast.Call):
            name = _last_name(node.func)
            printed = _printed(script, node)
            if name == "print" and not any(isinstance(part, (ast.Name, ast.Attribute)) for part in printed):
                continue
            if name in _READS:
                return True
            if depth and any(_reads(own, f.body, depth - 1, files) for own, f in _called(script, node, files)):
                return True
    return False


def has_recorded(script: Script, statement: ast.stmt) -> bool:
    """Whether work of several processes may be recorded when a statement is reached, since the last step.

    Where it stands in a function, by those who call that, in any file of the program; not above a condition on the
    rank, which only some processes have met.
    """
    return _recorded(script, statement, _files(script), set())


def _recorded(script: Script, statement: ast.stmt, files: tuple[Script, ...], seen: set[ast.AST]) -> bool:
    parent, block = script.parents[statement], script.block(statement)
    place = block.index(statement)
    found = _last_recorded(script, block[:place], files)
    if found is None and isinstance(parent, (ast.For, ast.While)) and block is parent.body:
        found = _last_recorded(script, block[place:], files) or None  # the round before
    if found is not None:
        return found
    if isinstance(parent, (ast.FunctionDef, ast.AsyncFunctionDef)):
        if parent in seen:
            return False
        seen.add(parent)
        return any(_recorded(own, own.statement(call), files, seen) for own, call in _callers(script, parent, files))
    if isinstance(parent, ast.If) and may_depend_on_rank(script, parent.test):
        return False
    if isinstance(parent, ast.ExceptHandler | ast.match_case):
        parent = script.parents[parent]
    return (
        isinstance(parent, ast.stmt) and not isinstance(parent, ast.ClassDef) and _recorded(script, parent, files, seen)
    )


def _last_recorded(script: Script, statements: list[ast.stmt], files: tuple[Script, ...]) -> bool | None:
    """Whether something is recorded behind the last step of some statements; None where there is neither."""
    for before in reversed(statements):
        if is_step(before):
            return False
        if _records(script, before, _DEPTH, files):
            return True
    return None


def _records(script: Script, statement: ast.stmt, depth: int, files: tuple[Script, ...]) -> bool:
    """Whether a statement may record work of several processes: a wrapped model, a backward pass, a collective."""
    for node in _inside([statement]):
        if not isinstance(node, ast.Call):
            continue
        name = script.qualified(node.func)
        collective = name.startswith(_GROUP) and not name.endswith(_ASKS)
        if collective or is_wrapper_call(script, node) or _last_name(node.func) == "backward":
            return True
        if is_module(script, node.func):
            return True
        if depth and any(
            _records(own, part, depth - 1, files) for own, f in _called(script, node, files) for part in f.body
        ):
            return True
    return False


def takes_steps(script: Script, statements: list[ast.stmt]) -> bool:
    """Whether statements compute gradients or take the step of an optimizer, in functions of the program too."""
    return _any_call(script, statements, _trains, _DEPTH, _files(script))


def uses_device(script: Script, statements: list[ast.stmt]) -> bool:
    """Whether statements call a model or move something to a device, in functions of the program too."""
    return _any_call(script, statements, _is_on_device, _DEPTH, _files(script))


def _trains(script: Script, call: ast.Call) -> bool:
    return _last_name(call.func) == "backward" or is_step(ast.Expr(call)) or takes_gradients(script, call)


def _is_on_device(script: Script, call: ast.Call) -> bool:
    return is_move(call) or is_module(script, call.func)


def _any_call(
    script: Script,
    statements: list[ast.stmt],
    kind: Callable[[Script, ast.Call], bool],
    depth: int,
    files: tuple[Script, ...],
) -> bool:
    """Whether a call among statements, or in functions of the program that they call, is of a kind."""
    calls = [node for node in _inside(statements) if isinstance(node, ast.Call)]
    if any(kind(script, call) for call in calls):
        return True
    called = (found for call in calls if depth for found in _called(script, call, files))
    return any(_any_call(own, function.body, kind, depth - 1, files) for own, function in called)


def is_step(statement: ast.stmt) -> bool:
    """Whether a statement is a step of an optimizer, after which all that was recorded is run."""
    call = statement.value if isinstance(statement, ast.Expr) else None
    if not isinstance(call, ast.Call) or not isinstance(call.func, ast.Attribute) or call.func.attr != "step":
        return False
    return "sched" not in ast.unparse(call.func.value).lower()


def _inside(statements: list[ast.stmt]) -> Iterator[ast.AST]:
    waiting: list[ast.AST] = list(statements)
    while waiting:
        node = waiting.pop()
        yield node
        if not isinstance(node, (ast.FunctionDef, ast.AsyncFunctionDef, ast.ClassDef, ast.Lambda)):
            waiting += ast.iter_child_nodes(node)


def _printed(script: Script, call: ast.Call) -> Iterator[ast.AST]:
    """The values that a print shows, but for ranks and counters."""
    for node in ast.walk(call):
        counts = "epoch" in _last_name(node) or "step" in _last_name(node)
        if node is not call.func and not counts and not (isinstance(node, ast.expr) and is_rank(script, node)):
            yield node


def _files(script: Script) -> tuple[Script, ...]:
    """The file, and the others of its program."""
    others = script.program.scripts if script.program is not None else ()
    return script, *(each for each in others if each.path != script.path)


def _called(script: Script, call: ast.Call, files: tuple[Script, ...]) -> Iterator[tuple[Script, _Function]]:
    """The functions of the program that a call may be of, each with its file."""
    name = _last_name(call.func)
    for own in files:
        for function in _functions(own).get(name, ()):
            if _may_call(script, call, own, function):
                yield own, function


def _callers(script: Script, function: _Function, files: tuple[Script, ...]) -> Iterator[tuple[Script, ast.Call]]:
    """The calls in the program that may be of a function, each with its file."""
    for own in files:
        for call in _calls(own).get(function.name, ()):
            if _may_call(own, call, script, function):
                yield own, call


def _may_call(script: Script, call: ast.Call, own: Script, function: _Function) -> bool:
    """Whether a call by a function's name may be of it: a method is an object's, a function a module's."""
    name = script.qualified(call.func)
    if name.startswith(_LIBRARIES):
        return False
    is_method = isinstance(own.parents[function], ast.ClassDef)
    if is_method or not isinstance(call.func, ast.Attribute):
        return is_method is isinstance(call.func, ast.Attribute)
    module = own.path.parent.name if own.path.stem == "__init__" else own.path.stem
    return own is not script and module in name.split(".")


@lru_cache(maxsize=KEPT)
def _functions(script: Script) -> Mapping[str, list[_Function]]:
    found: dict[str, list[_Function]] = {}
    for function in script.find(ast.FunctionDef, ast.AsyncFunctionDef):
        found.setdefault(function.name, []).append(function)
    return found


@lru_cache(maxsize=KEPT)
def _calls(script: Script) -> Mapping[str, list[ast.Call]]:
    found: dict[str, list[ast.Call]] = {}
    for call in script.find(ast.Call):
        found.setdefault(_last_name(call.func), []).append(call)
    return found


def _last_name(node: ast.AST) -> str:
    return node.attr if isinstance(node, ast.Attribute) else node.id if isinstance(node, ast.Name) else ""
