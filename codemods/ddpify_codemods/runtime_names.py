"""The import of ddpify_runtime that a set of edits needs, and the names under which it binds them."""

from __future__ import annotations

import ast
from collections.abc import Collection, Iterator, Mapping, Sequence

from .import_places import insertions
from .rule import Edit, GuardToFunction, Insert, Replace, ReplaceImport

RUNTIME = "ddpify_runtime"
_LONGEST_LINE = 88  # black's and isort's


def runtime_import(tree: ast.Module, edits: Sequence[Edit]) -> tuple[list[Insert], Mapping[str, str]]:
    """The insertions that import what the edits use.

    Returns the insertions (none when nothing is used) and the new names of those that the file binds otherwise.
    """
    used = {name for edit in edits if isinstance(edit, (Replace, Insert)) for name in edit.imports}
    moved = [edit for edit in edits if isinstance(edit, ReplaceImport)]
    given_up = [alias for edit in moved for alias in edit.at.names if alias.name == edit.name]
    taken = set(_bound_names(tree, set(given_up)))
    renamed = {name: f"ddpify_{name}" for name in used if name in taken}
    names = {f"{name} as {renamed[name]}" if name in renamed else name for name in used}
    names |= {f"{alias.name} as {alias.asname}" if alias.asname else alias.name for alias in given_up}
    modules = {line for edit in edits if isinstance(edit, (Replace, Insert, GuardToFunction)) for line in edit.modules}
    lines = [line for line in sorted(modules) if line not in _import_lines(tree)]
    lines += _from_imports(names)
    using = (edit.node if isinstance(edit, Replace) else edit.at for edit in edits if _adds_names(edit))
    first_use = min((node.lineno for node in using), default=float("inf"))
    return insertions(tree, lines, first_use), renamed


def _adds_names(edit: Edit) -> bool:
    """Whether an edit uses names at its own place (what is inserted after an import follows the new imports)."""
    return isinstance(edit, Replace) and bool(edit.imports or edit.modules)


def imports_runtime(tree: ast.Module) -> bool:
    """Whether a file imports ddpify_runtime, anywhere."""
    return any(
        (isinstance(node, ast.ImportFrom) and (node.module or "").split(".")[0] == RUNTIME)
        or (isinstance(node, ast.Import) and any(alias.name.split(".")[0] == RUNTIME for alias in node.names))
        for node in ast.walk(tree)
    )


def _from_imports(names: Collection[str]) -> list[str]:
    """The statements that import names, each renamed one in a statement of its own, as isort has it."""
    plain = sorted(name for name in names if " as " not in name)
    renamed = [f"from {RUNTIME} import {name}" for name in sorted(names) if " as " in name]
    line = f"from {RUNTIME} import {', '.join(plain)}"
    if len(line) > _LONGEST_LINE:
        line = f"from {RUNTIME} import (\n" + "".join(f"    {name},\n" for name in plain) + ")"
    return [line, *renamed] if plain else renamed


def _import_lines(tree: ast.Module) -> set[str]:
    return {
        f"import {alias.name}" + (f" as {alias.asname}" if alias.asname else "")
        for node in tree.body
        if isinstance(node, ast.Import)
        for alias in node.names
    }


def _bound_names(tree: ast.Module, given_up: set[ast.alias]) -> Iterator[str]:
    for node in ast.walk(tree):
        if isinstance(node, ast.Name) and isinstance(node.ctx, (ast.Store, ast.Del)):
            yield node.id
        elif isinstance(node, (ast.FunctionDef, ast.AsyncFunctionDef, ast.ClassDef)):
            yield node.name
        elif isinstance(node, ast.arg):
            yield node.arg
        elif isinstance(node, ast.alias) and node not in given_up:
            yield node.asname or node.name.split(".")[0]
