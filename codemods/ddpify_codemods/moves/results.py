"""The results of moving a program, without the imports that it needs no more."""

from __future__ import annotations

import ast
from collections.abc import Collection, Iterable
from pathlib import Path

from ..facts.script import Script
from ..found import Found, rewritten
from ..reading import parse
from ..result import Result
from ..rule import Delete, DropImport, Edit


def results_of(found: Iterable[Found], launch: str = "") -> dict[Path, Result]:
    """The results of a move, by path.

    Args: what rules say about each file; how the program is started then, if not as the target's other scripts.
    """
    return {
        each.script.path: Result(
            without_idle_imports(each.script, rewritten(each)), each.changes, each.findings, launch=launch
        )
        for each in found
    }


def without_idle_imports(before: Script, code: str, kept: Collection[str] = ()) -> str:
    """The text of a file without the imports that it used, and uses no more; `kept`: modules that stay all the same."""
    tree = parse(before.path, code)
    used, still = ({node.id for node in ast.walk(each) if isinstance(node, ast.Name)} for each in (before.tree, tree))
    edits: list[tuple[str, Edit]] = []
    for node in tree.body:
        if not isinstance(node, ast.Import | ast.ImportFrom):
            continue
        names = [(alias.asname or alias.name.split(".")[0], alias.name) for alias in node.names]
        idle = [full for name, full in names if name in used - still and full not in kept]
        if len(idle) == len(names):
            edits.append(("", Delete(node, "")))
        else:
            edits += [("", DropImport(node, full, "")) for full in idle]
    left = rewritten(Found(Script(before.path, code, tree, False, frozenset()), tuple(edits)))
    return left if code[:1].isspace() else left.lstrip()
