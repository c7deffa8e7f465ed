"""HDF5 files that are opened to be read and written, and are only read: `h5py.File(path, "r+")`.

h5py locks a file that may be written: one process alone can have it open. Any number of them can read it.
"""

from __future__ import annotations

import ast

from .script import Script

_FILE = "h5py.File"
# They make an array of their own of a data set's numbers.
_COPY = frozenset({"numpy.array", "numpy.asarray"})
_METHODS = frozenset({"close", "keys"})


def mode_to_read(script: Script, call: ast.Call) -> ast.Constant | None:
    """The `"r+"` of a call that opens a file of which all that is done with it is seen, and only reads; None elsewhere.

    Where the same program file opens others to write them, they may be the same: they stay as they are.
    """
    mode = _both(script, call)
    named = (
        each for kind in (ast.Attribute, ast.Name) for each in script.find(kind) if script.qualified(each) == _FILE
    )
    called = {each.func for each in script.find(ast.Call)}
    if not called.issuperset(named) or "to_hdf(" in script.text:  # by another name, something may write it
        return None
    files = (each for each in script.find(ast.Call) if script.qualified(each.func) == _FILE)
    if mode is None or not all(_reads(each) or (_both(script, each) and _is_only_read(script, each)) for each in files):
        return None
    return mode


def _both(script: Script, call: ast.Call) -> ast.Constant | None:
    """The mode of a file that is opened to be read and written, if that is written in the call."""
    mode = _mode(call)
    opens = script.qualified(call.func) == _FILE and len(call.args) + len(call.keywords) == 2
    return mode if opens and isinstance(mode, ast.Constant) and mode.value == "r+" else None


def _reads(call: ast.Call) -> bool:
    mode = _mode(call)
    return mode is None or (isinstance(mode, ast.Constant) and mode.value == "r")


def _mode(call: ast.Call) -> ast.expr | None:
    given = [*call.args[1:2], *(word.value for word in call.keywords if word.arg in ("mode", None))]
    starred = [each for each in call.args[:2] if isinstance(each, ast.Starred)]
    return next(iter(starred + given), None)


def _is_only_read(script: Script, call: ast.Call) -> bool:
    """Whether a file is read where it is opened, or has a name in one function that only reads it."""
    parent = script.parents[call]
    name = parent.optional_vars if isinstance(parent, ast.withitem) else None
    if isinstance(parent, ast.Assign) and len(parent.targets) == 1:
        name = parent.targets[0]
    if name is None:
        return _is_array(script, call)
    function = script.scope(call)
    if not isinstance(name, ast.Name) or not isinstance(function, ast.FunctionDef | ast.AsyncFunctionDef):
        return False
    inside = [*ast.walk(function)]
    if any(isinstance(each, ast.Global | ast.Nonlocal) and name.id in each.names for each in inside):
        return False
    uses = [each for each in inside if isinstance(each, ast.Name) and each.id == name.id]
    return all(_only_reads(script, each) for each in uses if not isinstance(each.ctx, ast.Store))


def _only_reads(script: Script, file: ast.expr) -> bool:
    """Whether a file is closed where it is named, or asked for its keys, or for an array of what it holds."""
    parent = script.parents[file]
    if isinstance(parent, ast.Attribute) and parent.attr in _METHODS:
        call = script.parents[parent]
        return isinstance(call, ast.Call) and call.func is parent
    return _is_array(script, file)


def _is_array(script: Script, file: ast.expr) -> bool:
    """Whether what is taken of a file is an array: `f["data"][:]`, `np.array(f["data"])`."""
    data = script.parents[file]
    if not isinstance(data, ast.Subscript) or data.value is not file or not isinstance(data.ctx, ast.Load):
        return False
    taken = script.parents[data]
    if isinstance(taken, ast.Call):
        return taken.args[:1] == [data] and script.qualified(taken.func) in _COPY
    if not isinstance(taken, ast.Subscript) or taken.value is not data or not isinstance(taken.ctx, ast.Load):
        return False
    index = taken.slice
    parts = index.elts if isinstance(index, ast.Tuple) else [index]  # `()` takes all
    return all(isinstance(each, ast.Slice) or ast.unparse(each) == "..." for each in parts)
