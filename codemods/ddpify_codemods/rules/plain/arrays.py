"""Arrays of numpy that loops add up, which are arrays after they were brought together, too; and lists of arrays."""

from __future__ import annotations

import ast

from ...facts.script import Script


def is_array(script: Script, at: ast.stmt, name: str) -> bool:
    """Whether numpy has made what a variable is before a statement, `np.zeros(3)`."""
    given = [
        node.value
        for node in script.find(ast.Assign)
        if name in map(ast.unparse, node.targets) and script.scope(node) is script.scope(at) and node.lineno < at.lineno
    ]
    made = [
        call.func.value
        for call in given
        if isinstance(call, ast.Call)
        and isinstance(call.func, ast.Attribute)
        and isinstance(call.func.value, ast.Name)
        and script.qualified(call.func.value) == "numpy"
    ]
    return bool(made) and len(made) == len(given)


def as_numbers(script: Script, at: ast.AST, name: str) -> str:
    """The code of a list of numbers, as torch takes it: of `losses.append(loss.detach().numpy())`, which makes a list
    of arrays of no dimension, as numbers of Python's own."""
    appended = [
        call.args[0]
        for call in script.find(ast.Call)
        if isinstance(call.func, ast.Attribute)
        and call.func.attr == "append"
        and ast.unparse(call.func.value) == name
        and script.scope(call) is script.scope(at)
        and len(call.args) == 1
    ]
    arrays = [each for each in appended if isinstance(each, ast.Call) and getattr(each.func, "attr", "") == "numpy"]
    listed = arrays and arrays == appended and not _is_made_by_call(script, at, name)
    return f"[each.tolist() for each in {name}]" if listed else name


def _is_made_by_call(script: Script, at: ast.AST, name: str) -> bool:
    """Whether the statement that gives a variable its value before a place is a call: `seen = np.concatenate(seen)`."""
    before = [
        each
        for each in script.find(ast.Assign)
        if each.lineno < at.lineno and script.scope(each) is script.scope(at)  # type: ignore[attr-defined]
        if any(isinstance(part, ast.Name) and part.id == name for target in each.targets for part in ast.walk(target))
    ]
    return bool(before) and isinstance(max(before, key=lambda each: each.lineno).value, ast.Call)
