"""Imports that functions need whose own imports make a name theirs: `import torch` in a function, under a condition or
below the code that an edit puts there, hides the one of the file."""

from __future__ import annotations

import ast
from collections.abc import Iterator, Mapping, Sequence

from .facts.tree import index
from .rule import ChangeArgument, Edit, Guard, Insert, Replace, place_of

_FUNCTIONS = (ast.FunctionDef, ast.AsyncFunctionDef)
_USING = (Replace, ChangeArgument, Insert, Guard)


def local_imports(tree: ast.Module, edits: Sequence[Edit]) -> list[Insert]:
    """The edits that put import lines, which others need, at the beginning of such functions."""
    parents = index(tree).parents
    needed: dict[tuple[ast.stmt, str], None] = {}
    for edit in edits:
        for line in edit.modules if isinstance(edit, _USING) else ():
            function = _function_around(parents, place_of(edit))
            if function is not None and _hides(parents, function, line, place_of(edit)):
                needed[_first(function), line] = None
    message = "import what the new code uses, which the function imports under a condition or later"
    return [Insert(at, line, message) for at, line in needed]


def _function_around(
    parents: Mapping[ast.AST, ast.AST], node: ast.AST
) -> ast.FunctionDef | ast.AsyncFunctionDef | None:
    inner = node
    while inner in parents:
        outer = parents[inner]
        if isinstance(outer, _FUNCTIONS) and inner in outer.body:
            return outer
        inner = outer
    return None


def _hides(parents: Mapping[ast.AST, ast.AST], function: ast.AST, line: str, at: ast.AST) -> bool:
    """Whether a function imports a name itself, for itself alone, and not in any case before a place in it."""
    name = _name_of(line)
    if any(isinstance(node, ast.Global) and name in node.names for node in ast.walk(function)):
        return False
    own = [node for node in _imports(function) if any(_bound(alias) == name for alias in node.names)]
    before = (each for each in own if parents[each] is function and each.lineno < at.lineno)  # type: ignore[attr-defined]
    return bool(own) and not any(True for _ in before)


def _imports(function: ast.AST) -> Iterator[ast.Import | ast.ImportFrom]:
    """The imports of a function, but for those of functions and classes in it."""
    for node in ast.iter_child_nodes(function):
        if isinstance(node, ast.Import | ast.ImportFrom):
            yield node
        elif not isinstance(node, (*_FUNCTIONS, ast.ClassDef, ast.Lambda)):
            yield from _imports(node)


def _name_of(line: str) -> str:
    """The name that an import line binds."""
    statement = ast.parse(line).body[0]
    assert isinstance(statement, ast.Import | ast.ImportFrom)
    return _bound(statement.names[0])


def _bound(alias: ast.alias) -> str:
    return alias.asname or alias.name.partition(".")[0]


def _first(function: ast.FunctionDef | ast.AsyncFunctionDef) -> ast.stmt:
    """The first statement of a function behind its docstring."""
    body = function.body
    said = isinstance(body[0], ast.Expr) and isinstance(body[0].value, ast.Constant)
    return body[1] if said and len(body) > 1 else body[0]
