"""Which files a program may read after it has written them, by whatever spelling of their path."""

from __future__ import annotations

import ast
import os
from collections.abc import Mapping, Sequence
from functools import lru_cache

from .called_modules import last_name
from .effects import effects, is_stream, opens_to_write, reads
from .same_file import may_be_read_by, path_of, reads_by_name
from .script import KEPT, Script


def may_be_read_back(script: Script, call: ast.Call) -> bool:
    """Whether the program may read the file that a call opens to write it."""
    return call in script.read_elsewhere or call in _read_by(script, script)


def read_elsewhere(scripts: Sequence[Script]) -> Mapping[Script, frozenset[ast.AST]]:
    """Of each file, the calls that open what other files of the program may read."""
    others = {script: [each for each in scripts if each is not script] for script in scripts}
    return {
        script: frozenset[ast.AST]().union(*(_read_by(script, each) for each in others[script])) for script in others
    }


@lru_cache(maxsize=KEPT)
def _read_by(script: Script, other: Script) -> frozenset[ast.Call]:
    calls = (call for call in script.find(ast.Call) if opens_to_write(script, call))
    return frozenset(call for call in calls if any(_may_be_same(script, call, other, read) for read in _reads(other)))


def _may_be_same(script: Script, call: ast.Call, other: Script, read: ast.Call) -> bool:
    of_path = isinstance(read.func, ast.Attribute) and read.func.attr in ("read_text", "read_bytes")
    names = _name(path_of(script, call)), _name(read.func.value if of_path else path_of(other, read))  # type: ignore[attr-defined]
    return may_be_read_by(script, call, other, read) and (None in names or names[0] == names[1])


def _name(path: ast.expr | None) -> str | None:
    """What a file is called without its folder, where the path says so: "a.txt" of `join(folder, "a.txt")`."""
    if isinstance(path, ast.Constant) and isinstance(path.value, str):
        return os.path.basename(path.value)
    if isinstance(path, ast.Call) and last_name(path.func) in ("join", "Path") and path.args:
        return _name(path.args[-1])
    if isinstance(path, ast.BinOp) and isinstance(path.op, ast.Div):
        return _name(path.right)
    last = path.right if isinstance(path, ast.BinOp) and isinstance(path.op, ast.Add) else None
    if isinstance(path, ast.JoinedStr) and path.values:
        last = path.values[-1]
    text = last.value if isinstance(last, ast.Constant) else None
    return os.path.basename(text) if isinstance(text, str) and "/" in text else None


@lru_cache(maxsize=KEPT)
def _reads(script: Script) -> tuple[ast.Call, ...]:
    """The calls that open a file to read it, or give its path to what does."""
    writers = {*effects(script)}
    return tuple(
        call
        for call in script.find(ast.Call)
        if call not in writers
        and (reads(script, call) or (reads_by_name(script, call) and not _has_it_open(script, call)))
    )


def _has_it_open(script: Script, call: ast.Call) -> bool:
    """Whether a call reads on in a file that is open: `file.read()`, `json.load(file)`, `json.load(open(path))`."""
    given = [call.func.value] if isinstance(call.func, ast.Attribute) else []
    given += call.args[:1]
    return any(is_stream(script, each) or (isinstance(each, ast.Call) and reads(script, each)) for each in given)
