"""The comments and blank lines above a statement, where statements come and go around it."""

from __future__ import annotations

from collections.abc import Sequence
from itertools import pairwise
from typing import TypeAlias

import libcst as cst

Statement: TypeAlias = cst.SimpleStatementLine | cst.BaseCompoundStatement


def lines_above(statement: Statement) -> list[cst.EmptyLine]:
    return list(getattr(statement, "leading_lines", ()))


def with_lines_above(statement: Statement, lines: Sequence[cst.EmptyLine]) -> Statement:
    """A statement with more lines above its own."""
    own = lines_above(statement)
    changed = statement.with_changes(leading_lines=[*without_last_blanks(lines, own), *own])
    assert isinstance(changed, (cst.SimpleStatementLine, cst.BaseCompoundStatement))
    return changed


def without_last_blanks(lines: Sequence[cst.EmptyLine], following: Sequence[cst.EmptyLine]) -> list[cst.EmptyLine]:
    """Lines without the blank ones at their end, where blank ones follow."""
    kept = list(lines)
    while following and following[0].comment is None and kept and kept[-1].comment is None:
        kept.pop()
    return kept


def without_first_blanks(lines: Sequence[cst.EmptyLine]) -> list[cst.EmptyLine]:
    """Lines without the blank ones at their start."""
    first = next((number for number, line in enumerate(lines) if line.comment is not None), len(lines))
    return list(lines[first:])


def below_first(first: Sequence[cst.CSTNode], body: list[Statement]) -> list[Statement]:
    """Put two blank lines above the class or function that a file began with, where something stands above it now."""
    name = first[0].name.value if first and isinstance(first[0], cst.ClassDef | cst.FunctionDef) else ""
    named = (place for place, each in enumerate(body) if getattr(getattr(each, "name", None), "value", "") == name)
    place = next(named, 0) if name else 0
    if not place or lines_above(body[place]):
        return body
    return [*body[:place], with_lines_above(body[place], [cst.EmptyLine(indent=False)] * 2), *body[place + 1 :]]


def below_functions(first: Sequence[cst.CSTNode], body: list[Statement]) -> list[Statement]:
    """Put two blank lines below a function that a file did not have, where none are."""
    known = {each.name.value for each in first if isinstance(each, cst.FunctionDef)}
    found = body[:1]
    for above, each in pairwise(body):
        is_new = isinstance(above, cst.FunctionDef) and above.name.value not in known
        is_close = all(line.comment for line in lines_above(each)[:1])
        found.append(with_lines_above(each, [cst.EmptyLine(indent=False)] * 2) if is_new and is_close else each)
    return found


def after_block(statements: list[Statement], lines: Sequence[cst.EmptyLine]) -> list[Statement]:
    """Keep the blank lines that follow a block above what was inserted, the comments above their statement."""
    if len(statements) < 2 or lines_above(statements[0]) or not lines:
        return statements
    blank = next((number for number, line in enumerate(lines) if line.comment is not None), len(lines))
    return [
        statements[0].with_changes(leading_lines=lines[:blank]),
        *(
            each.with_changes(leading_lines=lines[blank:]) if lines_above(each) == list(lines) else each
            for each in statements[1:]
        ),
    ]
