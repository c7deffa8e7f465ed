"""Imports whose module must be a local one and is not there."""

from __future__ import annotations

import ast
import importlib.util
import os
import re
import sys
from collections.abc import Iterator
from functools import cache
from pathlib import Path

from ..folders import is_package, listing, remembered
from .script import Script


def missing_imports(script: Script, roots: tuple[Path, ...]) -> Iterator[tuple[int, str]]:
    """The imports that find nothing, with their lines: ".models" relatively, "package.module" from the roots.

    Args: the file; the folders where absolute imports are found, none if that is not known.
    """
    for node in script.imports:
        if not _may_fail(script, node):
            for name in _missing(script, node, roots):
                yield node.lineno, name


def found_beside(script: Script) -> str:
    """A module that a file imports as Python 2 did, from its own folder, where it is not found; "" for none."""
    folder = script.path.absolute().parent
    missing = (name for _, name in missing_imports(script, script.roots) if not name.startswith("."))
    return next((name for name in missing if _reaches(str(folder), name.split("."))), "")


def is_package_of(name: str, roots: tuple[Path, ...]) -> bool:
    """Whether the project has a package of that name."""
    return any(is_package(str(root), name.split(".")[0]) for root in roots)


def unfound_part(name: str, roots: tuple[Path, ...]) -> str:
    """What of an import is not found: the package, or a module in it, if the project has a folder of that name."""
    top = name.split(".")[0]
    return name if any(_reaches(str(root), [top]) for root in roots) else top


def _may_fail(script: Script, node: ast.AST) -> bool:
    """Whether an import may find nothing: in a `try`, or for a type checker only."""
    return any(
        isinstance(parent, ast.Try) or (isinstance(parent, ast.If) and "TYPE_CHECKING" in ast.unparse(parent.test))
        for parent in script.ancestors(node)
    )


def _missing(script: Script, node: ast.Import | ast.ImportFrom, roots: tuple[Path, ...]) -> Iterator[str]:
    if isinstance(node, ast.Import):
        names = [alias.name for alias in node.names]
    elif node.level:
        folders = script.path.absolute().parents
        folder = folders[min(node.level, len(folders)) - 1]
        if node.module and not _reaches(str(folder), node.module.split(".")):
            yield f"{'.' * node.level}{node.module}"
        return
    else:
        names = [node.module] if node.module else []
    yield from (name for name in names if roots and _is_missing(name, roots))


@remembered
def _is_missing(name: str, roots: tuple[Path, ...]) -> bool:
    """Whether an absolute import finds nothing, though it must be of this project, or all other packages are here."""
    top, *rest = name.split(".")
    if top in sys.stdlib_module_names or any(_reaches(str(root), [top, *rest]) for root in roots):
        return False
    if is_package_of(name, roots):
        return True
    if _is_installed(top) or not _is_installed("torch"):  # without torch this is no machine that trains
        return False
    return not any(re.search(rf"(?i)\b{top}\b", _requirements(root)) for root in roots)


@remembered
def _requirements(folder: Path) -> str:
    """What a folder says about the packages that its scripts need."""
    files = [*folder.glob("*requirements*.txt"), *folder.glob("environment*.y*ml")]
    files += [folder / name for name in ("pyproject.toml", "setup.py", "setup.cfg", "Pipfile")]
    texts = (path.read_text(encoding="utf-8", errors="replace") for path in files if path.is_file())
    return "\n".join(texts).replace("-", "_")


def _reaches(folder: str, parts: list[str]) -> bool:
    """Whether a folder has `a/b/c`, or any file of that name: Python, or an extension that is compiled or will be."""
    for part in parts[:-1]:
        here = listing(folder)
        if part not in here.folders:
            return part in here.stems  # names in a module
        folder = os.path.join(folder, part)
    return parts[-1] in listing(folder).folders or parts[-1] in listing(folder).stems


@cache
def _is_installed(top: str) -> bool:
    try:
        return importlib.util.find_spec(top) is not None
    except (ImportError, ValueError):
        return False
