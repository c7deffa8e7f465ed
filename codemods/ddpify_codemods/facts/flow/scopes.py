"""Whose variable a name is: that of a function, a class or a file."""

from __future__ import annotations

import ast
from collections.abc import Iterator

from ..bindings import bindings
from ..script import Script

FUNCTIONS = (ast.FunctionDef, ast.AsyncFunctionDef)


def binder_of(script: Script, name: ast.Name) -> ast.AST:
    """The function, or the module, whose variable a name is."""
    for parent in script.ancestors(name):
        if isinstance(parent, FUNCTIONS):
            declared = any(
                name.id in part.names and parent in script.ancestors(part) for part in script.find(ast.Global)
            )
            if not declared and (name.id in parameters_of(parent) or name.id in bindings(script, parent)):
                return parent
    return script.tree


def parameters_of(function: ast.AST) -> set[str]:
    """The names of a function's parameters, but for those that take any number."""
    assert isinstance(function, FUNCTIONS)
    given = function.args
    return {each.arg for each in (*given.posonlyargs, *given.args, *given.kwonlyargs)}


def class_around(script: Script, node: ast.AST) -> ast.AST | None:
    """The class that something is written in."""
    return next((parent for parent in script.ancestors(node) if isinstance(parent, ast.ClassDef)), None)


def bound_otherwise(node: ast.AST) -> Iterator[str]:
    """The names that something gives a value by another way than an assignment."""
    if isinstance(node, ast.Nonlocal):
        yield from node.names
    elif isinstance(node, ast.alias):
        yield node.asname or node.name
    elif isinstance(node, (*FUNCTIONS, ast.ClassDef, ast.ExceptHandler, ast.MatchAs, ast.MatchStar)):
        yield node.name or ""
    elif isinstance(node, ast.MatchMapping):
        yield node.rest or ""
