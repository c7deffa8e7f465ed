"""Files that all ranks open for writing together, although rank 0 alone writes: none may go on as if it had been there.

One is where the script catches that a file cannot be opened, since the null device always can. The other is a file that
the program reads too: rank 0 would empty it before the others have read it.
"""

from __future__ import annotations

import ast
from collections.abc import Iterator

from .called_modules import last_name
from .effects import opened_for_writing, opens_file, reads
from .origins import origins
from .script import Script

_OF_FILES = frozenset(
    {"OSError", "IOError", "EnvironmentError", "FileNotFoundError", "PermissionError", "IsADirectoryError"}
    | {"NotADirectoryError", "Exception", "BaseException"}
)
_READ_METHODS = ("read_text", "read_bytes", "open")


def opened_in_step(script: Script, call: ast.Call) -> bool:
    """Whether a call opens a file for writing that every rank has to wait for: `open(path, "w")`, no log handler."""
    if not opens_file(script, script.qualified(call.func)) or opened_for_writing(script, call) is None:
        return False
    return _may_be_caught(script, call, frozenset()) or is_read(script, call)


def is_read(script: Script, call: ast.Call) -> bool:
    """Whether a file that a call opens for writing is read elsewhere in the script."""
    path = opened_for_writing(script, call)
    if path is None:
        return False
    name = _names(script, path)
    others = (other for other in script.find(ast.Call) if other is not call)
    return any(name & _names(script, read) for other in others for read in _read_paths(script, other))


def closes(script: Script, made: ast.Assign) -> Iterator[ast.Call]:
    """Where the function that opens a file closes it, by the name that it gives it: `f.close()`."""
    names = {each.id for each in made.targets if isinstance(each, ast.Name)}
    for call in script.find(ast.Call):
        closed = call.func.value if isinstance(call.func, ast.Attribute) and call.func.attr == "close" else None
        if isinstance(closed, ast.Name) and closed.id in names and script.scope(call) is script.scope(made):
            yield call


def _read_paths(script: Script, call: ast.Call) -> Iterator[ast.expr]:
    if call.args and reads(script, call):
        yield call.args[0]
    if isinstance(call.func, ast.Attribute) and call.func.attr in _READ_METHODS:
        yield call.func.value


def _names(script: Script, path: ast.expr) -> set[str]:
    """How a file may be called: what names its path, and what that is made of."""
    made = [each for each in origins(script, path) if not isinstance(each, ast.Constant) or each.value is not None]
    given = [each.args[0] for each in made if isinstance(each, ast.Call) and len(each.args) == 1 and _is_path(each)]
    return {ast.dump(each) for each in (*made, *given)}


def _is_path(call: ast.Call) -> bool:
    return last_name(call.func) in ("Path", "str")


def _may_be_caught(script: Script, node: ast.AST, seen: frozenset[ast.AST]) -> bool:
    """Whether the file catches that a file cannot be opened: around a line, or around what calls its function."""
    child = node
    for parent in script.ancestors(node):
        if child in getattr(parent, "body", ()) and _catches(parent):
            return True
        if isinstance(parent, (ast.FunctionDef, ast.AsyncFunctionDef)):
            owner = script.parents[parent]
            name = owner.name if isinstance(owner, ast.ClassDef) and parent.name == "__init__" else parent.name
            calls = (call for call in script.find(ast.Call) if last_name(call.func) == name)
            return parent not in seen and any(_may_be_caught(script, call, seen | {parent}) for call in calls)
        child = parent
    return False


def _catches(node: ast.AST) -> bool:
    if isinstance(node, (ast.With, ast.AsyncWith)):
        contexts = [item.context_expr for item in node.items]
        suppressed = [each for each in contexts if isinstance(each, ast.Call) and last_name(each.func) == "suppress"]
        return any(_is_of_files(kind) for each in suppressed for kind in each.args)
    handlers: list[ast.ExceptHandler] = getattr(node, "handlers", [])
    return any(_is_of_files(each.type) for each in handlers)


def _is_of_files(kind: ast.expr | None) -> bool:
    kinds = kind.elts if isinstance(kind, ast.Tuple) else [kind]
    return any(each is None or last_name(each) in _OF_FILES for each in kinds)
