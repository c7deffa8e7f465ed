"""Expressions that are not computed where they stand, but where something is called that is made of them."""

from __future__ import annotations

import ast
import re
from collections.abc import Iterator
from typing import TypeAlias

from ..partials import partial_of
from ..script import Script
from .program import Program
from .scopes import binder_of

_HOLDERS = (ast.Dict, ast.List, ast.Tuple, ast.IfExp)
_KEYS = ("len", "list", "sorted")  # what they give of a dict calls nothing

Places: TypeAlias = tuple[tuple[Script, ast.stmt], ...]


def run_at(program: Program, script: Script, node: ast.expr) -> Places | None:
    """The statements in which an expression is computed: its own, or those that call the function which it is in.

    None where that is not seen.
    """
    return _run_at(program, script, node, frozenset())


def _run_at(program: Program, script: Script, node: ast.AST, seen: frozenset[ast.AST]) -> Places | None:
    child = node
    while not isinstance(child, ast.stmt):
        parent = script.parents[child]
        if (isinstance(parent, ast.Lambda) and child is parent.body) or partial_of(script, parent) is child:
            return _called_at(program, script, parent, seen)
        child = parent
    return ((script, child),)


def _called_at(program: Program, script: Script, node: ast.AST, seen: frozenset[ast.AST]) -> Places | None:
    """The statements that call a function, or one of those in a dict or a list, for which an expression stands."""
    parent = script.parents[node]
    holds = isinstance(parent, _HOLDERS) or (isinstance(parent, ast.Subscript) and parent.value is node)
    if holds or partial_of(script, parent) is node:
        return _called_at(program, script, parent, seen)
    if isinstance(parent, ast.Attribute) and isinstance(call := script.parents[parent], ast.Call):
        gives = call.func is parent and parent.attr == "get"
        return _called_at(program, script, call, seen) if gives else _nowhere_if(parent.attr == "keys")
    if isinstance(parent, ast.Call):
        return _run_at(program, script, parent, seen) if parent.func is node else _nowhere_if(_takes_keys(parent))
    if isinstance(parent, ast.Compare):
        return _nowhere_if(all(isinstance(each, ast.In | ast.NotIn) for each in parent.ops))
    if not isinstance(parent, ast.Assign | ast.AnnAssign):
        return None
    targets: list[ast.expr] = parent.targets if isinstance(parent, ast.Assign) else [parent.target]
    if node in targets:
        return ()
    name = targets[0].value if isinstance(targets[0], ast.Subscript) else targets[0]
    if not isinstance(name, ast.Name) or len(targets) > 1 or parent in seen:
        return None
    found: Places = ()
    for there, use in _uses(program, script, name):
        places = _called_at(program, there, use, seen | {parent})
        if places is None:
            return None
        found += places
    return found


def _uses(program: Program, script: Script, name: ast.Name) -> Iterator[tuple[Script, ast.expr]]:
    """Where a variable is read: in its function, or in whatever file imports it."""
    binder = binder_of(script, name)
    for each in script.find(ast.Name):
        if each.id == name.id and isinstance(each.ctx, ast.Load) and binder_of(script, each) is binder:
            yield script, each
    for other in program.scripts if binder is script.tree else ():
        if other.path != script.path:
            aliases = (alias for alias in other.find(ast.alias) if alias.name in (name.id, "*"))
            names = {name.id if alias.name == "*" else alias.asname or alias.name for alias in aliases}
            module = script.path.parent.name if script.path.stem == "__init__" else script.path.stem
            full = re.compile(rf"(.*\.)?{re.escape(module)}\.{name.id}")
            yield from ((other, each) for each in other.find(ast.Attribute) if full.fullmatch(other.qualified(each)))
            loads = (each for each in other.find(ast.Name) if isinstance(each.ctx, ast.Load))
            yield from ((other, each) for each in loads if each.id in names)


def _takes_keys(call: ast.Call) -> bool:
    return isinstance(call.func, ast.Name) and call.func.id in _KEYS


def _nowhere_if(calls_nothing: bool) -> Places | None:
    return () if calls_nothing else None
