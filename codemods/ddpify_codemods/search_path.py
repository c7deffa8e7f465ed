"""The folders that a file puts on sys.path, as far as its source says which."""

from __future__ import annotations

import ast
import os
from collections.abc import Iterator
from dataclasses import dataclass
from itertools import islice, product
from pathlib import Path
from typing import TypeAlias

from .facts.origins import sources
from .facts.script import Script
from .facts.tree import parsed

_Known: TypeAlias = dict[ast.expr, list[str]]

_MOST = 8  # values of one expression that are followed
_SAME = {"abspath", "realpath", "normpath", "expanduser", "str", "fspath", "Path", "PurePath", "list", "set", "sorted"}
_SAME_METHODS = {"resolve", "absolute", "expanduser", "as_posix"}


@dataclass(frozen=True)
class Added:
    """A folder on sys.path. first: it is looked through before the script's own."""

    folder: Path
    first: bool


def added_folders(file: Path, text: str, here: Path) -> list[Added]:
    """The existing folders that a file adds to sys.path: by append, insert, extend, `+=`, an assignment, addsitedir.

    Args: the file, its text, and the folder where people stand who start it: a relative folder may be meant from there,
    from where os.chdir goes in the file, or from the file's own.
    Returns them in the order of the file; none for a text that does not parse.
    """
    if not any(word in text for word in ("sys.path", "addsitedir", "from sys import")):
        return []
    try:
        tree = parsed(text)
    except (SyntaxError, ValueError, RecursionError):
        return []
    script = Script(file, text, tree, is_entry=False, defined=frozenset())
    bases = [str(file.parent), str(here)]
    gone = [call.args[0] for call in script.find(ast.Call) if script.qualified(call.func) == "os.chdir" and call.args]
    bases = [
        os.path.join(base, place) for node in gone for base in bases for place in _values(script, node, base)
    ] + bases
    found: dict[Added, None] = {}
    for node, first in _additions(script):
        for base in bases:
            for place in _values(script, node, base):
                folder = Path(os.path.normpath(os.path.join(base, place)))
                if folder.is_dir():
                    found[Added(folder.resolve(), first)] = None
    return list(found)


def _additions(script: Script) -> Iterator[tuple[ast.expr, bool]]:
    """What is added to sys.path, and whether in front."""
    for node in sorted(script.find(ast.Call), key=lambda call: (call.lineno, call.col_offset)):
        if script.qualified(node.func) in ("sys.path.append", "sys.path.extend", "site.addsitedir") and node.args:
            yield node.args[0], False
        elif script.qualified(node.func) == "sys.path.insert" and len(node.args) == 2:
            yield node.args[1], isinstance(node.args[0], ast.Constant) and node.args[0].value == 0
    for change in script.find(ast.AugAssign):
        if script.qualified(change.target) == "sys.path":
            yield change.value, False
    for assignment in script.find(ast.Assign):
        target = assignment.targets[0]
        if script.qualified(target.value if isinstance(target, ast.Subscript) else target) == "sys.path":
            yield assignment.value, True


def _values(script: Script, node: ast.expr, base: str, known: _Known | None = None) -> list[str]:
    """The paths that an expression may come to, or the paths in it if it is a list; none if only the run can know."""
    known = {} if known is None else known
    if node not in known:
        known[node] = []  # what is made of itself
        known[node] = list(dict.fromkeys(_computed(script, node, base, known)))[:_MOST]
    return known[node]


def _computed(script: Script, node: ast.expr, base: str, known: _Known) -> list[str]:
    def of(*nodes: ast.expr) -> list[tuple[str, ...]]:
        return list(islice(product(*(_values(script, each, base, known) for each in nodes)), _MOST**2))

    if isinstance(node, ast.Constant):
        return [node.value] if isinstance(node.value, str) else []
    if isinstance(node, ast.Name) and node.id == "__file__":
        return [str(script.path)]
    if isinstance(node, (ast.List, ast.Tuple, ast.Set)):
        return [path for each in node.elts for (path,) in of(each)]
    if isinstance(node, ast.BoolOp):
        return [path for each in node.values for (path,) in of(each)]
    if isinstance(node, ast.Starred):
        return [path for (path,) in of(node.value)]
    if isinstance(node, ast.JoinedStr):
        return ["".join(parts) for parts in of(*node.values)]
    if isinstance(node, ast.FormattedValue):
        return [path for (path,) in of(node.value)]
    if isinstance(node, ast.BinOp) and isinstance(node.op, ast.Div):
        return [os.path.join(*parts) for parts in of(node.left, node.right)]
    if isinstance(node, ast.BinOp) and isinstance(node.op, ast.Add):
        if isinstance(node.left, ast.List) or isinstance(node.right, ast.List):
            return [path for each in (node.left, node.right) for (path,) in of(each)]
        return ["".join(parts) for parts in of(node.left, node.right)]
    if isinstance(node, ast.Subscript):
        return _subscript(script, node, base, known)
    if isinstance(node, ast.Attribute) and node.attr == "parent":
        return [os.path.dirname(os.path.normpath(os.path.join(base, path))) for (path,) in of(node.value)]
    if isinstance(node, ast.Call):
        found = _call(script, node, base, known)
        if found is not None:
            return found
    constants = {"os.curdir": ".", "os.pardir": "..", "os.sep": os.sep, "os.path.sep": os.sep}
    name = script.qualified(node)
    if name in constants:
        return [constants[name]]
    return [path for each in sources(script, node) for (path,) in of(each)]


def _subscript(script: Script, node: ast.Subscript, base: str, known: _Known) -> list[str]:
    """`Path(x).parents[1]`, `os.path.split(x)[0]`, `sys.argv[0]`, `sys.path[0]`."""
    index = node.slice.value if isinstance(node.slice, ast.Constant) else None
    if isinstance(node.value, ast.Attribute) and node.value.attr == "parents" and isinstance(index, int):
        paths = (Path(os.path.normpath(os.path.join(base, p))) for p in _values(script, node.value.value, base, known))
        return [str(path.parents[index]) for path in paths if 0 <= index < len(path.parents)]
    name = script.qualified(node.value.func if isinstance(node.value, ast.Call) else node.value)
    if name in ("sys.argv", "sys.path") and index == 0:
        return [str(script.path if name == "sys.argv" else script.path.parent)]
    if name == "os.path.split" and index == 0 and isinstance(node.value, ast.Call):
        return [os.path.dirname(path) for path in _values(script, node.value.args[0], base, known)]
    return []


def _call(script: Script, call: ast.Call, base: str, known: _Known) -> list[str] | None:
    """What a function for paths gives back; None for any other."""
    name = script.qualified(call.func)
    last = name.rpartition(".")[2]
    if name in ("os.getcwd", "pathlib.Path.cwd"):
        return [base]
    if name.startswith("inspect.get") and last.endswith("file"):
        return [str(script.path)]
    method = call.func.attr if isinstance(call.func, ast.Attribute) else ""
    own = name.startswith(("os.", "pathlib.")) or name in _SAME
    if not own and isinstance(call.func, ast.Attribute) and method in (*_SAME_METHODS, "joinpath"):
        parts = [call.func.value, *(call.args if method == "joinpath" else [])]
    elif own and (last in ("dirname", "join") or last in _SAME):
        parts = list(call.args)
    else:
        return None
    found = [
        os.path.join(*each)
        for each in islice(product(*(_values(script, part, base, known) for part in parts)), _MOST**2)
        if each
    ]
    if method == "resolve" or last in ("abspath", "realpath", "absolute"):
        return [os.path.normpath(os.path.join(base, path)) for path in found]
    return [os.path.dirname(path) for path in found] if last == "dirname" else found
