"""Parameters of functions that only show what they are given: `def log(*values): print(*values)`.

A number of a rank that is given to one of them is brought together in the call, where it is known to be one: elsewhere
the function may be given a text.
"""

from __future__ import annotations

import ast
from collections.abc import Iterable, Iterator, Mapping, Sequence
from functools import lru_cache

from ..called_modules import last_name
from ..script import KEPT, Script

_SHOWING = frozenset(
    {"print", "write", "writelines", "debug", "info", "warning", "error", "critical", "exception", "log", "echo"}
)
_MAKING_TEXTS = frozenset({"join", "format", "str"})


@lru_cache(maxsize=4)
def _calls(scripts: tuple[Script, ...]) -> Mapping[str, Sequence[ast.Call]]:
    """The calls in a program, by the last name of what they call."""
    found: dict[str, list[ast.Call]] = {}
    for script in scripts:
        for call in script.find(ast.Call):
            found.setdefault(last_name(call.func), []).append(call)
    return found


def given_in_calls(scripts: tuple[Script, ...], script: Script, function: ast.FunctionDef, call: ast.Call) -> set[int]:
    """The arguments of a call, by their places (keywords after the others), that are brought together in it."""
    if last_name(call.func) != function.name or any(isinstance(each, ast.Starred) for each in call.args):
        return set()
    shown = _shown(script, function)
    named = [name for name, _ in _arguments(function, call)]
    others = [pair for each in _calls(scripts).get(function.name, ()) for pair in _arguments(function, each)]
    several = {each.arg for each in (function.args.vararg, function.args.kwarg) if each is not None}
    texts = {name for name, value in others if _is_text(value) or _is_none(value)} | several
    return {place for place, name in enumerate(named) if name in shown & texts}


def may_be_text(
    script: Script, node: ast.expr, called_with: Mapping[ast.AST, Iterable[tuple[ast.Call, Script]]]
) -> bool:
    """Whether an expression is a parameter that some call of its function gives a text.

    Args: the file; the expression; the calls of each function that have been followed.
    """
    function = script.scope(node)
    if not isinstance(node, ast.Name) or not isinstance(function, ast.FunctionDef):
        return False
    calls = [call for call, _ in called_with.get(function, ())]
    return any(name == node.id and _is_text(value) for call in calls for name, value in _arguments(function, call))


def _arguments(function: ast.FunctionDef, call: ast.Call) -> Iterator[tuple[str, ast.expr]]:
    """The arguments of a call, each with the name of its parameter."""
    names = [each.arg for each in (*function.args.posonlyargs, *function.args.args)]
    names = names[1:] if names[:1] == ["self"] else names
    rest = function.args.vararg.arg if function.args.vararg else ""
    for place, value in enumerate(call.args):
        yield (names[place] if place < len(names) else rest), value
    known = {*names, *(each.arg for each in function.args.kwonlyargs)}
    more = function.args.kwarg.arg if function.args.kwarg else ""
    for word in call.keywords:
        yield (word.arg if word.arg in known else more) or "", word.value


def _is_text(node: ast.expr) -> bool:
    if isinstance(node, ast.BinOp):
        return _is_text(node.left) or _is_text(node.right)
    if isinstance(node, ast.Call):
        return last_name(node.func) in _MAKING_TEXTS
    return isinstance(node, ast.JoinedStr) or (isinstance(node, ast.Constant) and isinstance(node.value, str))


def _is_none(node: ast.expr) -> bool:
    return isinstance(node, ast.Constant) and node.value is None


@lru_cache(maxsize=KEPT)
def _shown(script: Script, function: ast.FunctionDef) -> frozenset[str]:
    """The parameters of a function with which it does nothing but showing them."""
    parameters = [node.arg for node in ast.walk(function.args) if isinstance(node, ast.arg)]
    uses: dict[str, list[ast.Name]] = {}
    for node in ast.walk(function):
        if isinstance(node, ast.Name):
            uses.setdefault(node.id, []).append(node)
    return frozenset(name for name in parameters if uses.get(name) and _is_only_shown(script, uses, name))


def _is_only_shown(script: Script, uses: Mapping[str, list[ast.Name]], name: str, of_loop: bool = False) -> bool:
    for node in uses[name]:
        statement = script.statement(node)
        if of_loop and isinstance(node.ctx, ast.Store):
            continue
        if isinstance(node.ctx, ast.Store) or not _shows(script, uses, node, statement):
            return False
    return True


def _shows(script: Script, uses: Mapping[str, list[ast.Name]], node: ast.Name, statement: ast.stmt) -> bool:
    if isinstance(statement, ast.For) and node in ast.walk(statement.iter):
        targets = [each.id for each in ast.walk(statement.target) if isinstance(each, ast.Name)]
        return all(_is_only_shown(script, uses, each, of_loop=True) for each in targets)
    if isinstance(statement, ast.Assign):
        return _is_text(statement.value) and node in ast.walk(statement.value)
    value = statement.value if isinstance(statement, ast.Expr) else None
    return isinstance(value, ast.Call) and last_name(value.func) in _SHOWING and node is not value.func
