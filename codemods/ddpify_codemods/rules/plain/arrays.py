"""Arrays of numpy that loops add up, which are arrays after they were brought together, too; and lists of arrays."""

from __future__ import annotations

import ast

from ...facts.bindings import names_in
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
    of arrays of no dimension, as numbers of Python's own; of lists of them, `losses[epoch].append(…)`, too."""
    appended = [
        call
        for call in script.find(ast.Call)
        if isinstance(call.func, ast.Attribute)
        and call.func.attr == "append"
        and script.scope(call) is script.scope(at)
        and len(call.args) == 1
    ]
    own = [each for each in appended if ast.unparse(each.func.value) == name]  # type: ignore[attr-defined]
    if own and all(map(_is_array, own)) and not _is_made_by_call(script, at, name):
        return f"[each.tolist() for each in {name}]"
    inner = [each for each in appended if _may_be_within(script, each.func.value, name)]  # type: ignore[attr-defined]
    nested = inner and not own and any(map(_is_array, inner))
    return f"[[float(number) for number in each] for each in {name}]" if nested else name


def _is_array(append: ast.Call) -> bool:
    given = append.args[0]
    return isinstance(given, ast.Call) and getattr(given.func, "attr", "") == "numpy"


def _may_be_within(script: Script, node: ast.expr, name: str) -> bool:
    """Whether a list is one of those in another: `losses[0]`, or what a loop over them takes."""
    if isinstance(node, ast.Subscript):
        return ast.unparse(node.value) == name
    loops = (each for each in script.ancestors(node) if isinstance(each, ast.For))
    return isinstance(node, ast.Name) and any(
        node.id in names_in(each.target) and name in names_in(each.iter) for each in loops
    )


def _is_made_by_call(script: Script, at: ast.AST, name: str) -> bool:
    """Whether the statement that gives a variable its value before a place is a call: `seen = np.concatenate(seen)`."""
    before = [
        each
        for each in script.find(ast.Assign)
        if each.lineno < at.lineno and script.scope(each) is script.scope(at)  # type: ignore[attr-defined]
        if any(isinstance(part, ast.Name) and part.id == name for target in each.targets for part in ast.walk(target))
    ]
    return bool(before) and isinstance(max(before, key=lambda each: each.lineno).value, ast.Call)
