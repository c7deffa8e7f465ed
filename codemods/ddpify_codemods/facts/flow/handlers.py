"""Exceptions around a training: whether a rank that meets one goes on without the others, and trains again."""

from __future__ import annotations

import ast

from ..script import Script

GOES_ON = "a rank that goes on after an exception leaves the others waiting in their backward pass"
ENDS = frozenset({"sys.exit", "exit", "quit", "os._exit", "os.abort"})


def stops(script: Script, handler: ast.ExceptHandler) -> bool:
    """Whether a handler ends the run, or is of an end that a person asks for."""
    asked = isinstance(handler.type, ast.Name) and handler.type.id == "KeyboardInterrupt"
    return asked or _end(script, handler.body, leaves=False)


def leaves_loop(script: Script, handler: ast.ExceptHandler) -> bool:
    """Whether a handler leaves the loop, or the function, in any case."""
    return _end(script, handler.body, leaves=True)


def _end(script: Script, body: list[ast.stmt], leaves: bool) -> bool:
    """Whether each way through some statements ends the run; leaves: or the loop that they are in."""
    others = (ast.Continue,) if leaves else (ast.Continue, ast.Break, ast.Return)
    if any(isinstance(part, others) for each in body[:-1] for part in ast.walk(each)):
        return False
    last = body[-1]
    if isinstance(last, ast.If):
        return bool(last.orelse) and all(_end(script, each, leaves) for each in (last.body, last.orelse))
    if isinstance(last, ast.Expr) and isinstance(last.value, ast.Call):
        return script.qualified(last.value.func) in ENDS
    return isinstance(last, ast.Raise) or (leaves and isinstance(last, ast.Break | ast.Return))


def is_repeated(script: Script, node: ast.AST) -> bool:
    """Whether a loop runs over a statement, in the function that it is in."""
    for parent in script.ancestors(node):
        if isinstance(parent, ast.For | ast.AsyncFor | ast.While):
            return True
        if isinstance(parent, ast.FunctionDef | ast.AsyncFunctionDef):
            return False
    return False
