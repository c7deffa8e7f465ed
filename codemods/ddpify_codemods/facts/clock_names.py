"""Whether a time that a script reads becomes a name."""

from __future__ import annotations

import ast

from .effects import opened_for_writing, writes
from .script import Script

_TEXT_CLOCKS = {"time.strftime", "time.ctime", "time.asctime"}
_CLOCKS = {
    *("datetime.datetime.now", "datetime.datetime.utcnow", "datetime.datetime.today", "datetime.date.today"),
    *("time.time", "time.localtime", "time.gmtime", "os.getpid"),
}
_SHOWS = {"print", "info", "debug", "warning", "set_description", "set_postfix"}
_TEXT_METHODS = {"strftime", "isoformat", "format", "ctime"}
_TEXT_CALLS = {"str", "format", "os.path.join", "pathlib.Path", "time.strftime"}


def names_something(script: Script, call: ast.Call) -> bool:
    """Whether a time becomes part of a text that is kept or names a file; a time that is measured does not."""
    if script.qualified(call.func) not in _CLOCKS | _TEXT_CLOCKS:
        return False
    is_text = script.qualified(call.func) in _TEXT_CLOCKS
    for parent in script.ancestors(call):
        if isinstance(parent, ast.Call) and _takes_a_name(script, parent):
            return is_text
        is_text = is_text or _makes_text(script, parent)
        if isinstance(parent, (ast.Assign, ast.AnnAssign, ast.AugAssign, ast.Return)):
            return (is_text or _is_formatted_later(script, parent)) and not _is_only_shown(script, parent)
        if not _passes_on(script, parent):
            return False
    return False


def _is_only_shown(script: Script, statement: ast.AST) -> bool:
    """Whether a text is only printed or logged, which the other processes do not do."""
    if not isinstance(statement, ast.Assign) or not isinstance(statement.targets[0], ast.Name):
        return False
    name = statement.targets[0].id
    uses = [node for node in script.find(ast.Name) if node.id == name and isinstance(node.ctx, ast.Load)]
    shown = [any(_shows(script, parent) for parent in script.ancestors(use)) for use in uses]
    return bool(shown) and all(shown)


def _shows(script: Script, node: ast.AST) -> bool:
    return isinstance(node, ast.Call) and script.qualified(node.func).rpartition(".")[2] in _SHOWS


def _takes_a_name(script: Script, call: ast.Call) -> bool:
    """Whether a call may make a file or a directory of its argument: a library's, an own function's, an option's."""
    name = script.qualified(call.func).rpartition(".")[2]
    if writes(script, call) or opened_for_writing(script, call) is not None:
        return True
    return name in script.defined or name == "add_argument"


def _makes_text(script: Script, node: ast.AST) -> bool:
    if isinstance(node, ast.Call):
        method = node.func.attr if isinstance(node.func, ast.Attribute) else ""
        return method in _TEXT_METHODS or script.qualified(node.func) in _TEXT_CALLS
    return isinstance(node, ast.JoinedStr)


def _passes_on(script: Script, node: ast.AST) -> bool:
    if isinstance(node, ast.BinOp):
        return isinstance(node.op, (ast.Add, ast.Mod, ast.Div))
    if isinstance(node, ast.Call):
        return _makes_text(script, node) or script.qualified(node.func) in ("int", "round") or _is_method(node)
    return isinstance(node, (ast.Attribute, ast.JoinedStr, ast.FormattedValue, ast.keyword, ast.IfExp, ast.BoolOp))


def _is_method(call: ast.Call) -> bool:
    """A method of the time itself, such as `datetime.now().replace(microsecond=0)`."""
    return isinstance(call.func, ast.Attribute) and isinstance(call.func.value, ast.Call)


def _is_formatted_later(script: Script, statement: ast.AST) -> bool:
    """`now = datetime.now()`, of which some other line takes `now.strftime(…)`."""
    name = script.qualified(statement.targets[0]) if isinstance(statement, ast.Assign) else ""
    return bool(name) and any(
        node.attr in ("strftime", "isoformat") and script.qualified(node.value) == name
        for node in script.find(ast.Attribute)
    )
