"""What runs while a file is imported, before the program has joined the process group."""

from __future__ import annotations

import ast

from ...facts.header import joined_after
from ...facts.script import Script
from .words import program_of


def is_early(script: Script, node: ast.AST) -> bool:
    """Whether something stands beside the functions of a file that the program imports first of all."""
    if script.is_entry or any(isinstance(each, ast.FunctionDef | ast.Lambda) for each in script.ancestors(node)):
        return False
    return any(_is_imported_early(other, _name(script)) for other in program_of(script).scripts if other is not script)


def _name(script: Script) -> str:
    return script.path.parent.name if script.path.stem == "__init__" else script.path.stem


def _is_imported_early(script: Script, name: str) -> bool:
    """Whether a file imports a module of that name, or of its package, beside its functions and above the header."""
    end = joined_after(script)[0].lineno if script.is_entry else None
    for node in script.tree.body:
        if end is not None and node.lineno > end:
            return False
        parts = [alias.name for alias in node.names] if isinstance(node, ast.Import | ast.ImportFrom) else []
        parts += [node.module or ""] if isinstance(node, ast.ImportFrom) else []
        if any(name in each.split(".") for each in parts):
            return True
    return False
