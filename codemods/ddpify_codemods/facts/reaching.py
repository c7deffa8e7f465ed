"""Where a value comes from at one place: what a name is given later, or before it is given something else, is none."""

from __future__ import annotations

import ast
from collections.abc import Iterator

from .bindings import bindings
from .origins import sources
from .script import Script

_DEPTH = 8  # names on the way; a loop of names ends here


def reaching_origins(script: Script, node: ast.expr, depth: int = _DEPTH) -> Iterator[ast.expr]:
    """The expressions that a value may have been made by, as `origins` yields them, but for the order of the source.

    Args: the file; the expression, where it is read; how many names to follow.
    """
    yield node
    for value in _reaching(script, node) if depth else ():
        yield from reaching_origins(script, value, depth - 1)


def _reaching(script: Script, node: ast.expr) -> list[ast.expr]:
    found = bindings(script, script.scope(node)).get(node.id, []) if isinstance(node, ast.Name) else []
    if not found or not isinstance(node, ast.Name):
        return sources(script, node)
    last = _last_given(script, node)
    if last is None:
        return list(found)
    outside = {last, *script.ancestors(last), *script.ancestors(script.scope(node))}
    loops = {each for each in script.ancestors(node) if isinstance(each, (ast.For, ast.While))} - outside
    place = _place(script.statement(node))
    return [
        value
        for value in found
        if _place(last) <= _place(script.statement(value)) < place or not loops.isdisjoint(script.ancestors(value))
    ]


def _last_given(script: Script, name: ast.Name) -> ast.stmt | None:
    """The last statement that surely gives a name another value before it is read."""
    way = [script.statement(name)]
    way += [each for each in script.ancestors(way[0]) if isinstance(each, ast.stmt)]
    found = [
        statement
        for statement in map(script.statement, script.stores.get((script.scope(name), name.id), ()))
        if not isinstance(statement, ast.AugAssign) and _is_above(script, statement, way)
    ]
    return max(found, key=_place, default=None)


def _is_above(script: Script, statement: ast.stmt, way: list[ast.stmt]) -> bool:
    """Whether each way goes through a statement: a loop, or `with`, around a name, or one above in a block around it.

    Args: the file; the statement; those around the name, the innermost first.
    """
    if isinstance(statement, (ast.For, ast.With)):
        return statement in way[1:] and any(each in statement.body for each in way)
    block = script.block(statement)
    below = next((each for each in way if script.block(each) is block), statement)
    return isinstance(statement, (ast.Assign, ast.AnnAssign)) and _place(statement) < _place(below)


def _place(statement: ast.stmt) -> tuple[int, int]:
    return statement.lineno, statement.col_offset
