"""Exceptions around a training: whether a rank that meets one goes on without the others, and trains again."""

from __future__ import annotations

import ast

from ..script import Script

GOES_ON = "a rank that goes on after an exception leaves the others waiting in their backward pass"
_ENDS = frozenset({"sys.exit", "exit", "quit", "os._exit", "os.abort"})


def stops(script: Script, handler: ast.ExceptHandler) -> bool:
    """Whether a handler ends the run, or is of an end that a person asks for."""
    asked = isinstance(handler.type, ast.Name) and handler.type.id == "KeyboardInterrupt"
    nodes = [*ast.walk(handler)]
    calls = (node for node in nodes if isinstance(node, ast.Call))
    ends = any(script.qualified(each.func) in _ENDS for each in calls)
    return asked or ends or any(isinstance(node, ast.Raise) for node in nodes)


def is_repeated(script: Script, node: ast.AST) -> bool:
    """Whether a loop runs over a statement, in the function that it is in."""
    for parent in script.ancestors(node):
        if isinstance(parent, ast.For | ast.AsyncFor | ast.While):
            return True
        if isinstance(parent, ast.FunctionDef | ast.AsyncFunctionDef):
            return False
    return False
