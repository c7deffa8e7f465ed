"""What names mean that come from another file of the program: `from common import *`, `from common import nn`."""

from __future__ import annotations

import ast
from collections.abc import Mapping, Sequence
from pathlib import Path

from .script import Script


def inherited(scripts: Sequence[Script], defined: frozenset[str]) -> dict[Path, tuple[tuple[str, str], ...]]:
    """What the names of libraries mean that each file of a program gets through imports of the others.

    Args: the files, of which none knows yet what it gets; the functions, classes and methods defined in any of them.
    """
    by_stem: dict[str, list[Script]] = {}
    for script in scripts:
        by_stem.setdefault(_module_path(script).name, []).append(script)
    imports = {
        script.path: [
            (node, other)
            for node in script.find(ast.ImportFrom)
            if (other := imported_file(script, node, by_stem.get(_stem(script, node), ()))) and other is not script
        ]
        for script in scripts
    }
    local = {part for script in scripts for part in (script.path.stem, *script.path.parts)}

    def names(script: Script, known: Mapping[Path, Mapping[str, str]]) -> dict[str, str]:
        found: dict[str, str] = {}
        for node, inner in imports[script.path]:
            for alias in node.names:
                if alias.name == "*":
                    theirs = {**known[inner.path], **inner.imported}
                    libraries = {name: origin for name, origin in theirs.items() if origin.split(".")[0] not in local}
                    found.update((name, libraries[name]) for name in _exported(inner, libraries, defined))
                    continue
                origin = inner.imported.get(alias.name) or known[inner.path].get(alias.name, "")
                if origin and origin.split(".")[0] not in local and alias.name not in defined:
                    found[alias.asname or alias.name] = origin
        return found

    known: dict[Path, dict[str, str]] = {script.path: {} for script in scripts}
    for _ in scripts:  # a name comes a file further each time; in a circle of files two meanings could turn for ever
        further = {script.path: names(script, known) for script in scripts}
        if further == known:
            break
        known = further
    return {path: tuple(sorted(names.items())) for path, names in known.items()}


def _exported(script: Script, names: Mapping[str, str], defined: frozenset[str]) -> list[str]:
    """Those of some names that `from script import *` gives."""
    for node in script.tree.body:
        if isinstance(node, ast.Assign) and script.qualified(node.targets[0]) == "__all__":
            listed = {each.value for each in ast.walk(node.value) if isinstance(each, ast.Constant)}
            return [name for name in names if name in listed]
    return [name for name in names if not name.startswith("_") and name not in defined]


def imported_file(script: Script, node: ast.ImportFrom, scripts: Sequence[Script]) -> Script | None:
    """The file of the program that an import is from."""
    parts = tuple(node.module.split(".")) if node.module else ()
    for other in scripts:
        path = _module_path(other)
        if node.level and path == _above(script, node).joinpath(*parts):
            return other
        if not node.level and parts and path.parts[-len(parts) :] == parts:
            return other
    return None


def _stem(script: Script, node: ast.ImportFrom) -> str:
    """The last part of the name of the module that an import is from."""
    return node.module.rpartition(".")[2] if node.module else _above(script, node).name


def _above(script: Script, node: ast.ImportFrom) -> Path:
    """The folder that the dots of a relative import stand for."""
    return script.path.parents[min(node.level, len(script.path.parents)) - 1]


def _module_path(script: Script) -> Path:
    return script.path.parent if script.path.name == "__init__.py" else script.path.with_suffix("")
