"""What is recorded for the devices and not run yet, and what reads it."""

from __future__ import annotations

import ast
from collections.abc import Iterator

from .distributed import is_rank
from .eager import is_module, is_wrapper_call
from .script import Script

_READS = frozenset({"item", "cpu", "tolist", "numpy", "state_dict", "save", "print", "float"})
_GROUP = "torch.distributed."
_ASKS = ("get_rank", "get_world_size", "is_initialized", "is_available", "init_process_group", "destroy_process_group")
_DEPTH = 4  # calls of functions of the same file


def reads_values(script: Script, statements: list[ast.stmt], depth: int = _DEPTH) -> bool:
    """Whether statements may read back what a device has computed, or leave the others alone with the rest."""
    for node in _inside(statements):
        if isinstance(node, (ast.Return, ast.Continue, ast.Break)):
            return True
        if isinstance(node, ast.Call):
            name = _last_name(node.func)
            printed = _printed(script, node)
            if name == "print" and not any(isinstance(part, (ast.Name, ast.Attribute)) for part in printed):
                continue
            if name in _READS or (
                depth and any(reads_values(script, f.body, depth - 1) for f in _called(script, node))
            ):
                return True
    return False


def records(script: Script, statement: ast.stmt, depth: int = _DEPTH) -> bool:
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
        if depth and any(records(script, part, depth - 1) for f in _called(script, node) for part in f.body):
            return True
    return False


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


def _called(script: Script, call: ast.Call) -> list[ast.FunctionDef]:
    name = _last_name(call.func)
    return [function for function in script.find(ast.FunctionDef) if function.name == name]


def _last_name(node: ast.AST) -> str:
    return node.attr if isinstance(node, ast.Attribute) else node.id if isinstance(node, ast.Name) else ""
