"""What names and attributes are made of: assignments, loops, and what is appended to lists."""

from __future__ import annotations

import ast
from collections.abc import Iterator, Mapping
from functools import lru_cache
from typing import TypeAlias

from .script import KEPT, Script
from .tree import walk

Scope: TypeAlias = ast.Module | ast.FunctionDef | ast.AsyncFunctionDef

_STORING: tuple[type[ast.AST], ...] = (ast.Assign, ast.AugAssign, ast.AnnAssign, ast.NamedExpr, ast.For, ast.Call)


def bindings(script: Script, scope: Scope) -> Mapping[str, list[ast.expr]]:
    """What the names of a scope are made of: values assigned, appended or looped over."""
    return _by_scope(script).get(scope, {})


@lru_cache(maxsize=KEPT)
def _by_scope(script: Script) -> Mapping[Scope, Mapping[str, list[ast.expr]]]:
    found: dict[Scope, dict[str, list[ast.expr]]] = {}
    for node in script.find(*_STORING):
        for target, value in _stores(node):
            if isinstance(target, ast.Name):
                found.setdefault(script.scope(node), {}).setdefault(target.id, []).append(value)
    return found


@lru_cache(maxsize=KEPT)
def attribute_bindings(script: Script) -> Mapping[str, list[ast.expr]]:
    """The same for attributes, under their source: "self.params"."""
    found: dict[str, list[ast.expr]] = {}
    for node in script.find(*_STORING):
        for target, value in _stores(node):
            if isinstance(target, ast.Attribute):
                found.setdefault(ast.unparse(target), []).append(value)
    return found


def _stores(node: ast.AST) -> Iterator[tuple[ast.expr, ast.expr]]:
    if isinstance(node, ast.Assign):
        for target in node.targets:
            if isinstance(target, ast.Tuple):
                values = node.value.elts if isinstance(node.value, ast.Tuple) else [node.value] * len(target.elts)
                yield from zip(target.elts, values, strict=False)
            else:
                yield (target.value if isinstance(target, ast.Subscript) else target), node.value
    elif isinstance(node, (ast.AugAssign, ast.AnnAssign, ast.NamedExpr)):
        if node.value is not None:
            yield node.target, node.value
    elif isinstance(node, ast.For):
        for name in ast.walk(node.target):
            if isinstance(name, ast.Name):
                yield name, node.iter
    elif (
        isinstance(node, ast.Call)
        and isinstance(node.func, ast.Attribute)
        and node.func.attr in ("append", "extend", "insert", "update", "add")
    ):
        owner = node.func.value
        for branch in (owner.body, owner.orelse) if isinstance(owner, ast.IfExp) else (owner,):
            for value in node.args:
                yield (branch.value if isinstance(branch, ast.Subscript) else branch), value


@lru_cache(maxsize=64 * KEPT)
def arguments(scope: Scope) -> frozenset[str]:
    """The parameters of a function; none for a module."""
    if isinstance(scope, ast.Module):
        return frozenset()
    return frozenset(node.arg for node in walk(scope.args) if isinstance(node, ast.arg))


def names_in(node: ast.AST) -> set[str]:
    """Every name in an expression."""
    return {name.id for name in walk(node) if isinstance(name, ast.Name)}
