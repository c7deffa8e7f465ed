"""What a program runs while the imports at the top of its first file are run."""

from __future__ import annotations

import ast
from collections.abc import Iterator, Sequence

from .header import joined_after, main_guard
from .inherited import imported_file
from .script import Script

_FUNCTIONS = (ast.FunctionDef, ast.AsyncFunctionDef)


def run_at_import(scripts: Sequence[Script]) -> Iterator[tuple[ast.stmt, Script, ast.AST]]:
    """Each part of the other files that runs before the first file joins the process group, in the order of the
    imports, with the statement at the top of the first file that runs it first. What is called is found by its name:
    rather too much than too little.

    Args: the scripts of the program, the one that is started first.
    """
    entry, *others = scripts
    called: dict[str, list[tuple[Script, ast.AST]]] = {}
    for script in others:
        for function in script.find(ast.FunctionDef, ast.AsyncFunctionDef):
            cls = script.parents[function]
            name = cls.name if isinstance(cls, ast.ClassDef) and function.name == "__init__" else function.name
            called.setdefault(name, []).extend((script, part) for part in function.body)
    at, _ = joined_after(entry)
    seen: set[Script] = set()
    for statement in entry.tree.body:
        if statement.lineno <= at.lineno and statement is not main_guard(entry.tree):
            for node in _run_with(statement):
                if isinstance(node, ast.Import | ast.ImportFrom):
                    for script, part in _imported(others, entry, node, seen, called):
                        yield statement, script, part


def _imported(
    scripts: Sequence[Script],
    script: Script,
    node: ast.Import | ast.ImportFrom,
    seen: set[Script],
    called: dict[str, list[tuple[Script, ast.AST]]],
) -> Iterator[tuple[Script, ast.AST]]:
    """What an import runs, each file once."""
    for other in _files_of(script, node, scripts):
        if other not in seen:
            seen.add(other)
            guard = main_guard(other.tree)
            for statement in other.tree.body:
                if statement is not guard:
                    yield from _run_by(scripts, other, statement, seen, called)


def _run_by(
    scripts: Sequence[Script],
    script: Script,
    node: ast.AST,
    seen: set[Script],
    called: dict[str, list[tuple[Script, ast.AST]]],
) -> Iterator[tuple[Script, ast.AST]]:
    """What runs with a node, each file and each function once."""
    for part in _run_with(node):
        yield script, part
        if isinstance(part, ast.Import | ast.ImportFrom):
            yield from _imported(scripts, script, part, seen, called)
        elif isinstance(part, ast.Call) and not _is_of_library(script, part.func, scripts):
            name = part.func.attr if isinstance(part.func, ast.Attribute) else getattr(part.func, "id", "")
            for other, inner in called.pop(name, ()):
                yield from _run_by(scripts, other, inner, seen, called)


def _run_with(node: ast.AST) -> Iterator[ast.AST]:
    """A node and all in it that runs when it does: of a function, what its definition runs."""
    yield node
    if isinstance(node, _FUNCTIONS):
        parts: list[ast.AST] = [*node.decorator_list, *node.args.defaults, *filter(None, node.args.kw_defaults)]
    else:
        parts = [] if isinstance(node, ast.Lambda) else list(ast.iter_child_nodes(node))
    for part in parts:
        yield from _run_with(part)


def _is_of_library(script: Script, function: ast.expr, scripts: Sequence[Script]) -> bool:
    """Whether a function comes from what is imported, and is no file of the program."""
    while isinstance(function, ast.Attribute):
        function = function.value
    parts = script.imported.get(getattr(function, "id", ""), "").split(".")
    places = [ast.ImportFrom(".".join(parts[:count]), [], 0) for count in range(1, len(parts) + 1)]
    return parts != [""] and not any(imported_file(script, place, scripts) for place in places)


def _files_of(script: Script, node: ast.Import | ast.ImportFrom, scripts: Sequence[Script]) -> Iterator[Script]:
    """The files of the program that an import runs, packages before what is in them."""
    if isinstance(node, ast.Import):
        names = [alias.name for alias in node.names]
    else:
        module = [node.module] if node.module else []
        names = [*module, *(".".join([*module, alias.name]) for alias in node.names)]
    level = getattr(node, "level", 0)
    for name in names:
        parts = name.split(".")
        for count in range(1, len(parts) + 1):
            found = imported_file(script, ast.ImportFrom(".".join(parts[:count]), [], level), scripts)
            if found is not None:
                yield found
