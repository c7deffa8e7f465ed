"""Bars that show how far a loop has come, and the number that they have come to: `bar.n`."""

from __future__ import annotations

import ast

from .script import Script

COUNTS = frozenset({"n", "format_dict", "last_print_n"})


def is_read(script: Script, bars: set[str]) -> bool:
    """Whether the number is read that a bar has come to, by one of the names that it has."""
    read = (each for each in script.find(ast.Attribute) if each.attr in COUNTS)
    return any(isinstance(each.ctx, ast.Load) and ast.unparse(each.value) in bars for each in read)
