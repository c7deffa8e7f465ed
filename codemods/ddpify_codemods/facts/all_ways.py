"""Branches each of which gives a variable its value: `if saved is None: model = Net() else: model = saved["model"]`."""

from __future__ import annotations

import ast
import itertools
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


def in_other_branch(script: Script, node: ast.AST, other: ast.AST) -> bool:
    """Whether a run that comes to one of two parts of a file does not come to the other: `if … else …`."""
    around = {each: part for part, each in itertools.pairwise((other, *script.ancestors(other)))}
    for part, each in itertools.pairwise((node, *script.ancestors(node))):
        if isinstance(each, ast.If) and each in around:
            arms = [next((arm for arm in (each.body, each.orelse) if one in arm), None) for one in (part, around[each])]
            return None not in arms and arms[0] is not arms[1]
    return False
