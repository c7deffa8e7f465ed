"""Libraries that call a function with what the command line says: `app.run(main)`, `fire.Fire(main)`, `fire.Fire()`."""

from __future__ import annotations

import ast

from ..script import Script
from .values import Function, Value

COMMANDS = frozenset({"absl.app.run", "fire.Fire", "fire.core.Fire", "typer.run"})


def from_command_line(function: Function) -> dict[str, Value]:
    """What the parameters of such a function may be, whatever their defaults are."""
    parameters = function.node.args
    named = (*parameters.posonlyargs, *parameters.args, *parameters.kwonlyargs)
    return {each.arg: Value(is_none=None) for each in named}


def functions_of(script: Script) -> list[ast.Name]:
    """The functions of a file, by name, one of which the command line names where none is given: `fire.Fire()`."""
    names = (each.name for each in script.tree.body if isinstance(each, ast.FunctionDef))
    return [ast.Name(name, ast.Load()) for name in names if not name.startswith("_")]
