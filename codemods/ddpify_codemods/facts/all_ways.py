"""Branches each of which gives a variable its value: `if saved is None: model = Net() else: model = saved["model"]`."""

from __future__ import annotations

import ast
from collections.abc import Callable

from .script import Script


def behind_all_ways(script: Script, branches: ast.AST, binds: Callable[[ast.AST], bool]) -> ast.stmt | None:
    """The statement behind an `if` each way through which has an assignment of a kind; None where there is none.

    Args: the file, the `if`, whether an assignment is of that kind.
    """
    if not isinstance(branches, ast.If):
        return None
    if not all(any(isinstance(each, ast.Assign) and binds(each) for each in way) for way in ways(branches)):
        return None
    block = script.block(branches)
    return next(iter(block[block.index(branches) + 1 :]), None)


def ways(branches: ast.If) -> list[list[ast.stmt]]:
    """The statements of each way through an `if`, those through `elif` one by one."""
    nested = branches.orelse[0] if len(branches.orelse) == 1 else None
    return [branches.body, *(ways(nested) if isinstance(nested, ast.If) else [branches.orelse])]
