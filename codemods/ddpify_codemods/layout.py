"""Lays out calls that a conversion has made too long for a line: an argument on each, as black has it."""

from __future__ import annotations

import ast
from collections.abc import Collection

_LONGEST_LINE = 100


def laid_out(before: str, after: str, functions: Collection[str]) -> str:
    """The text of a file, with long calls of some functions on several lines.

    Args:
        before: the text of the original, whose lines stay as they are. after: the text to lay out. functions: the last
            names of what is called.
    """
    known = set(before.splitlines())
    lines = after.splitlines(keepends=True)
    calls = [node for node in ast.walk(ast.parse(after)) if isinstance(node, ast.Call)]
    done: set[int] = set()
    for call in sorted(calls, key=lambda node: (-node.lineno, node.col_offset)):
        number = call.lineno - 1
        line = lines[number].rstrip("\r\n")
        last = call.func.attr if isinstance(call.func, ast.Attribute) else getattr(call.func, "id", "")
        fits = len(line) <= _LONGEST_LINE or line in known or not line.isascii() or "\t" in line
        if last in functions and not fits and call.end_lineno == call.lineno and number not in done:
            done.add(number)
            lines[number] = _broken(call, line) + lines[number][len(line) :]
    return "".join(lines)


def _broken(call: ast.Call, line: str) -> str:
    indent = line[: len(line) - len(line.lstrip())]
    arguments = [line[each.col_offset : each.end_col_offset] for each in call.args]
    for word in call.keywords:
        value = line[word.col_offset : word.end_col_offset]
        arguments.append(value)
    head = line[: call.func.end_col_offset]
    body = "".join(f"\n{indent}    {each}," for each in arguments)
    return f"{head}({body}\n{indent}){line[call.end_col_offset :]}"
