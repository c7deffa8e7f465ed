"""Where the nodes of a file lie, in the tree of `ast` and in that of libcst.

The two are joined by position: ast counts columns in utf-8 bytes, libcst in characters.
"""

from __future__ import annotations

import ast
import re
from typing import TypeAlias

import libcst as cst
from libcst.metadata import MetadataWrapper, PositionProvider

Place: TypeAlias = tuple[int, int]
Span: TypeAlias = tuple[int, int, int, int]

_NEWLINE = re.compile(r"\r\n|\r|\n")


class _Wrapper(MetadataWrapper):
    """Leaves out libcst's second walk of the whole tree, for batched providers, which are not used here."""

    def visit_batched(self, *args: object, **kwargs: object) -> cst.CSTNode:
        return self.module


def spans(module: cst.Module, tree: ast.Module, lines: set[int]) -> dict[cst.CSTNode, Span]:
    """Where the nodes of the top-level statements are that have an edit; libcst takes long to find all positions."""
    found: dict[cst.CSTNode, Span] = {}
    originals = iter(tree.body)
    for statement in module.body:
        group = [next(originals) for _ in range(_count(statement))]
        first = min(node.lineno for node in (group[0], *getattr(group[0], "decorator_list", ())))
        if not any(first <= line <= (group[-1].end_lineno or first) for line in lines):
            continue
        alone = module.with_changes(body=[statement], header=())
        positions = _Wrapper(alone, unsafe_skip_copy=True).resolve(PositionProvider)
        top = next(iter(getattr(statement, "decorators", ())), statement)
        moved = first - positions[top].start.line
        for node, where in positions.items():
            start, end = where.start, where.end
            found[node] = (start.line + moved, start.column, end.line + moved, end.column)
    return found


def _count(statement: cst.CSTNode) -> int:
    return len(statement.body) if isinstance(statement, cst.SimpleStatementLine) else 1


class Places:
    """Positions of ast nodes, in characters."""

    def __init__(self, text: str) -> None:
        self._lines = _NEWLINE.split(text)

    def _column(self, line: int, offset: int) -> int:
        text = self._lines[line - 1]
        return offset if text.isascii() else len(text.encode()[:offset].decode())

    def start(self, node: ast.expr | ast.stmt) -> Place:
        return node.lineno, self._column(node.lineno, node.col_offset)

    def span(self, node: ast.expr) -> Span:
        assert node.end_lineno is not None and node.end_col_offset is not None
        return (*self.start(node), node.end_lineno, self._column(node.end_lineno, node.end_col_offset))
