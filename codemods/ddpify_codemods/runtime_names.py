"""The import of ddpify_runtime that a set of edits needs, and the names under which it binds them."""

from __future__ import annotations

import ast
from collections.abc import Collection, Iterator, Mapping, Sequence
from typing import TypeGuard

from .facts.header import last_leading_import
from .facts.tree import index
from .import_places import insertions
from .rule import ChangeArgument, Edit, Guard, GuardToFunction, Insert, Replace, ReplaceImport, RewriteImport, place_of

RUNTIME = "ddpify_runtime"
_LONGEST_LINE = 88  # black's and isort's


def runtime_import(tree: ast.Module, edits: Sequence[Edit]) -> tuple[list[Edit], Mapping[str, str]]:
    """The edits that import what the others use.

    Returns those edits (none when nothing is new) and the new names of those that the file binds otherwise.
    """
    used = {name for edit in edits if isinstance(edit, (Replace, ChangeArgument, Insert)) for name in edit.imports}
    moved = [edit for edit in edits if isinstance(edit, ReplaceImport)]
    given_up = [alias for edit in moved for alias in edit.at.names if alias.name == edit.name]
    existing = [node for node in tree.body if _is_runtime(node)]
    there = {alias.name: alias.asname or alias.name for node in existing for alias in node.names}
    taken = set(_bound_names(tree, {*given_up, *(alias for node in existing for alias in node.names)}))
    renamed = {name: f"ddpify_{name}" for name in used if name in taken}
    renamed |= {name: there[name] for name in used & set(there)}
    names = {f"{name} as {renamed[name]}" if name in renamed else name for name in used - set(there)}
    names |= {f"{alias.name} as {alias.asname}" if alias.asname else alias.name for alias in given_up}
    names -= {shown(alias) for node in existing for alias in node.names}
    using_modules = (Replace, ChangeArgument, Insert, GuardToFunction, Guard)
    used_at: dict[str, int] = {}
    for edit in edits:
        for line in edit.modules if isinstance(edit, using_modules) else ():
            used_at[line] = min(used_at.get(line, _line_of(edit)), _line_of(edit))
    imported = _import_lines(tree)
    lines = [line for line, at in sorted(used_at.items()) if imported.get(line, at + 1) > at]
    added: list[Edit] = []
    if existing and names and not any(" as " in name for name in names):
        added = [with_names(existing[0], names)]
    else:
        lines += from_imports(names)
    last = last_leading_import(tree)
    leading = tree.body[: tree.body.index(last) + 1] if last is not None else []
    using = (place_of(edit) for edit in edits if _adds_names(edit, leading))
    first_use = min((node.lineno for node in using), default=float("inf"))
    return [*added, *insertions(tree, lines, first_use)], {name: new for name, new in renamed.items() if name != new}


def with_names(statement: ast.ImportFrom, names: Collection[str]) -> RewriteImport:
    """The edit that adds names to an import of ddpify_runtime."""
    return RewriteImport(statement, import_from(RUNTIME, sorted({*names, *map(shown, statement.names)})))


def shown(alias: ast.alias) -> str:
    """One name of an import statement, as it is written there."""
    return f"{alias.name} as {alias.asname}" if alias.asname else alias.name


def _is_runtime(node: ast.stmt) -> TypeGuard[ast.ImportFrom]:
    return isinstance(node, ast.ImportFrom) and node.module == RUNTIME and not node.level


def runtime_aliases(tree: ast.Module) -> Mapping[str, str] | None:
    """What the names that a file imports from ddpify_runtime mean: {"DDP": "DistributedDataParallel"}; None without."""
    if not imports_runtime(tree):
        return None
    statements = (node for node in ast.walk(tree) if isinstance(node, ast.ImportFrom) and _is_runtime(node))
    return {alias.asname or alias.name: alias.name for node in statements for alias in node.names}


def runtime_name(node: ast.expr, names: Mapping[str, str]) -> str:
    """The name in ddpify_runtime that an expression stands for; "" for anything else."""
    if isinstance(node, ast.Attribute) and isinstance(node.value, ast.Name) and node.value.id == RUNTIME:
        return node.attr
    return names.get(node.id, "") if isinstance(node, ast.Name) else ""


def _adds_names(edit: Edit, leading: Sequence[ast.stmt]) -> bool:
    """Whether an edit uses names at its own place (what is inserted after an import follows the new imports).

    Args: the edit; the statements at the top of the file to which imports belong.
    """
    if isinstance(edit, Insert):
        return edit.at in leading and edit.where == "before" and bool(edit.imports or edit.modules)
    if isinstance(edit, ChangeArgument):
        return bool(edit.imports or edit.modules)
    return isinstance(edit, Replace) and bool(edit.imports or edit.modules)


def imports_runtime(tree: ast.Module) -> bool:
    """Whether a file imports ddpify_runtime, anywhere."""
    return any(
        (isinstance(node, ast.ImportFrom) and (node.module or "").split(".")[0] == RUNTIME)
        or (isinstance(node, ast.Import) and any(alias.name.split(".")[0] == RUNTIME for alias in node.names))
        for node in index(tree).nodes
    )


def from_imports(names: Collection[str]) -> list[str]:
    """The statements that import names, each renamed one in a statement of its own, as isort has it."""
    plain = sorted(name for name in names if " as " not in name)
    renamed = [import_from(RUNTIME, [name]) for name in sorted(names) if " as " in name]
    return [import_from(RUNTIME, plain), *renamed] if plain else renamed


def import_from(module: str, names: Sequence[str]) -> str:
    """The statement that imports names, as isort lays it out."""
    line = f"from {module} import {', '.join(names)}"
    if len(line) <= _LONGEST_LINE:
        return line
    return f"from {module} import (\n" + "".join(f"    {name},\n" for name in names) + ")"


def _import_lines(tree: ast.Module) -> dict[str, int]:
    """The modules that a file imports outside of functions, and the first line that does."""
    found: dict[str, int] = {}
    for node in tree.body:
        for alias in node.names if isinstance(node, ast.Import) else ():
            line = f"import {alias.name}" + (f" as {alias.asname}" if alias.asname else "")
            found.setdefault(line, node.lineno)
    return found


def _line_of(edit: Edit) -> int:
    """The last line of a file that runs before the code of an edit."""
    place = place_of(edit)
    if not isinstance(edit, Insert):
        return place.lineno
    return (place.end_lineno or place.lineno) if edit.where == "after" else place.lineno - 1


def _bound_names(tree: ast.Module, given_up: set[ast.alias]) -> Iterator[str]:
    for node in index(tree).nodes:
        if isinstance(node, ast.Name) and isinstance(node.ctx, (ast.Store, ast.Del)):
            yield node.id
        elif isinstance(node, (ast.FunctionDef, ast.AsyncFunctionDef, ast.ClassDef)):
            yield node.name
        elif isinstance(node, ast.arg):
            yield node.arg
        elif isinstance(node, ast.alias) and node not in given_up:
            yield node.asname or node.name.split(".")[0]
