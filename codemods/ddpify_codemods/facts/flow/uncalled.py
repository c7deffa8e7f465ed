"""Functions that would train, and that nothing calls: of files that are imported, or started by something else."""

from __future__ import annotations

import ast
from collections.abc import Sequence

from ..script import Script
from .own_networks import is_called_by_library

_DEFINITIONS = (ast.FunctionDef, ast.AsyncFunctionDef, ast.ClassDef)
_LOOKS_UP = frozenset({"globals", "locals", "eval", "exec", "vars", "Fire"})  # `model.eval()` is none


def uncalled(scripts: Sequence[Script]) -> tuple[ast.FunctionDef, str] | None:
    """The first function of the file that is started by which the program would train, where that file does not name
    it, and why nothing is trained; None where there is none.

    Args: the scripts of a program of which no training step is reached.
    """
    entry = scripts[0]
    named = {node.id for node in entry.find(ast.Name)}
    if _LOOKS_UP & named or any(node.attr == "Fire" for node in entry.find(ast.Attribute)):
        return None
    for each in entry.tree.body:
        if isinstance(each, ast.FunctionDef) and each.name not in named and _comes_to_backward(scripts, each):
            if is_called_by_library(entry, each):
                return each, f"{each.name}() is called by a library, which is not followed: call it in the file"
            return each, f"nothing calls {each.name}() here: convert the script that does, which is the one to start"
    return None


def _comes_to_backward(scripts: Sequence[Script], function: ast.AST) -> bool:
    """Whether a function comes to a backward pass, by the names in it, and in what these are of the program."""
    definitions: dict[str, list[ast.AST]] = {}
    for script in scripts:
        for each in script.find(*_DEFINITIONS):
            definitions.setdefault(each.name, []).append(each)
    waiting = [function]
    while waiting:
        inside = [*ast.walk(waiting.pop())]
        names = {node.attr for node in inside if isinstance(node, ast.Attribute)}
        if "backward" in names:
            return True
        names |= {node.id for node in inside if isinstance(node, ast.Name)}
        waiting += [each for name in names & definitions.keys() for each in definitions.pop(name)]
    return False
