"""Lays out calls that a conversion has made too long for a line, an argument on each, as black has it; joins them."""

from __future__ import annotations

import ast
from collections.abc import Collection

from .facts.tree import parsed

# What is laid out on several lines where a conversion has made it too long for one.
CALLS = (
    "DataLoader",
    "EquallyPaddedLoader",
    "pad_packed_sequence",
    "auto_dataloader",
    "__init__",  # of a class that is derived from DataLoader
    "ZeroRedundancyOptimizer",
    "restore",
)
_LONGEST_LINE = 100


def laid_out(before: str, after: str, functions: Collection[str]) -> str:
    """The text of a file, with long calls of some functions on several lines.

    Args:
        before: the text of the original, whose lines stay as they are. after: the text to lay out. functions: the last
            names of what is called.
    """
    if not any(len(line) > _LONGEST_LINE and any(name in line for name in functions) for line in after.splitlines()):
        return after
    known = set(before.splitlines())
    lines = after.splitlines(keepends=True)
    tree = parsed(after)
    shown = {part for node in ast.walk(tree) if isinstance(node, ast.JoinedStr) for part in ast.walk(node)}
    # An f-string may have no line break before Python 3.12.
    calls = [node for node in ast.walk(tree) if isinstance(node, ast.Call) and node not in shown]
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


def joined(before: str, after: str, functions: Collection[str]) -> str:
    """The text of a file with calls that `laid_out` may have put on several lines on one again, where they fit there.

    Args: as for `laid_out`; calls that the text before has as they are stay so.
    """
    lines = after.splitlines(keepends=True)
    calls = [node for node in ast.walk(parsed(after)) if isinstance(node, ast.Call)]
    for call in sorted(calls, key=lambda node: -node.lineno):
        last = call.func.attr if isinstance(call.func, ast.Attribute) else getattr(call.func, "id", "")
        start, end = call.lineno - 1, call.end_lineno or call.lineno
        text = "".join(lines[start:end])
        if last not in functions or text in before or not _is_broken(call, text):
            continue
        head, *body, tail = text.split("\n")[: end - start]
        line = f"{head}{' '.join(each.strip() for each in body).removesuffix(',')}{tail.strip()}"
        if len(line) <= _LONGEST_LINE:
            lines[start:end] = [line + "\n" * text.endswith("\n"), *[""] * (end - start - 1)]
    return "".join(lines)


def _is_broken(call: ast.Call, text: str) -> bool:
    """Whether a call has an argument on each line, and its brackets on the first and last."""
    arguments = [*call.args, *(word.value for word in call.keywords)]
    places = [(each.lineno, each.end_lineno) for each in arguments]
    each_on_its_own = places == [(call.lineno + n, call.lineno + n) for n in range(1, len(places) + 1)]
    *arguments_of, last = text.splitlines()
    plain = not set("#\r\t") & set("".join(arguments_of)) and not set("\r\t") & set(last)
    return each_on_its_own and call.end_lineno == call.lineno + len(places) + 1 and plain


def _broken(call: ast.Call, line: str) -> str:
    indent = line[: len(line) - len(line.lstrip())]
    arguments = [line[each.col_offset : each.end_col_offset] for each in call.args]
    for word in call.keywords:
        value = line[word.col_offset : word.end_col_offset]
        arguments.append(value)
    head = line[: call.func.end_col_offset]
    body = "".join(f"\n{indent}    {each}," for each in arguments)
    return f"{head}({body}\n{indent}){line[call.end_col_offset :]}"
