"""What a script does when a signal comes: the functions that it gives to `signal.signal`, and what they set."""

from __future__ import annotations

import ast
from collections.abc import Iterator
from functools import lru_cache

from .called_modules import last_name
from .script import KEPT, Script

_DEFAULTS = ("signal.SIG_IGN", "signal.SIG_DFL", "signal.default_int_handler")
_Function = (ast.FunctionDef, ast.AsyncFunctionDef)


def takes_signals(script: Script) -> Iterator[tuple[ast.Call, ast.expr]]:
    """The calls that say what is done at a signal, and what they are given for it."""
    for call in script.find(ast.Call):
        takes = script.qualified(call.func) == "signal.signal" and len(call.args) == 2
        if takes and script.qualified(call.args[1]) not in _DEFAULTS:
            yield call, call.args[1]


@lru_cache(maxsize=KEPT)
def at_a_signal(script: Script) -> frozenset[ast.AST]:
    """All that runs when a signal comes, of functions of the file also what they call."""
    functions = {each.name: each for each in script.nodes if isinstance(each, _Function)}
    given = [handler for _, handler in takes_signals(script)]
    waiting: list[ast.AST] = [functions.get(last_name(each), each) for each in given]
    found: set[ast.AST] = set()
    while waiting:
        function = waiting.pop()
        if function in found or isinstance(function, (ast.Name, ast.Attribute)):
            continue
        inside = {*ast.walk(function)}
        found |= inside
        called = {last_name(each.func) for each in inside if isinstance(each, ast.Call)}
        waiting += [functions[name] for name in called if name in functions]
    return frozenset(found)


def set_at_a_signal(script: Script) -> Iterator[ast.expr]:
    """Where else the script reads what it sets at a signal: a global name, an attribute, an entry, an event."""
    inside = at_a_signal(script)
    names = {name for each in inside if isinstance(each, ast.Global | ast.Nonlocal) for name in each.names}
    calls = [each.func for each in inside if isinstance(each, ast.Call) and _called(each, "set")]
    stores = [each for each in inside if isinstance(getattr(each, "ctx", None), ast.Store)]
    stored = {each.id for each in stores if isinstance(each, ast.Name)} & names
    attributes = {each.attr for each in stores if isinstance(each, ast.Attribute)}
    entries = {ast.dump(each.value) for each in stores if isinstance(each, ast.Subscript)}
    events = {ast.dump(each.value) for each in calls if isinstance(each, ast.Attribute)}
    for node in script.nodes:
        if node in inside or not isinstance(getattr(node, "ctx", ast.Load()), ast.Load):
            continue
        of_name = isinstance(node, ast.Name) and node.id in stored and not _is_local(script, node)
        of_attribute = isinstance(node, ast.Attribute) and node.attr in attributes and not _is_called(script, node)
        of_entry = isinstance(node, ast.Subscript) and ast.dump(node.value) in entries
        of_event = isinstance(node, ast.Call) and _called(node, "is_set") and _owner(node) in events
        if isinstance(node, ast.expr) and (of_name or of_attribute or of_entry or of_event):
            yield node


def _called(call: ast.Call, method: str) -> bool:
    return isinstance(call.func, ast.Attribute) and call.func.attr == method


def _owner(call: ast.Call) -> str:
    return ast.dump(call.func.value) if isinstance(call.func, ast.Attribute) else ""


def _is_called(script: Script, node: ast.AST) -> bool:
    parent = script.parents[node]
    return isinstance(parent, ast.Call) and parent.func is node


def _is_local(script: Script, name: ast.Name) -> bool:
    """Whether a name is one of its function's own."""
    scope = script.scope(name)
    if not isinstance(scope, _Function):
        return False
    inside = [*ast.walk(scope)]
    if any(name.id in each.names for each in inside if isinstance(each, ast.Global | ast.Nonlocal)):
        return False
    is_argument = any(isinstance(each, ast.arg) and each.arg == name.id for each in inside)
    names = (each for each in inside if isinstance(each, ast.Name) and each.id == name.id)
    stored = any(isinstance(each.ctx, ast.Store) for each in names)
    return is_argument or stored
