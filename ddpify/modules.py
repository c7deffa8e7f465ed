"""Scripts that are started as a module, `python -m package.train`: which file that is, and which script needs it."""

from __future__ import annotations

import ast
import os
import sys
from importlib.machinery import ModuleSpec, PathFinder
from pathlib import Path

from ddpify_codemods.facts.tree import index, parsed, walk

from ddpify.files import BadInput, shown


def locate(name: str) -> Path:
    """The file that `python -m name` runs, as it is found from the current folder; nothing is imported.

    Args:
        name: of a module, or of a package with a `__main__`.
    Returns:
        A path, relative to the current folder if it lies there.
    Raises:
        BadInput: there is no such module, or it is not a Python file.
    """
    remedy = "give the name that stands after `python -m`, in the folder where you stand then"
    if not all(part.isidentifier() for part in name.split(".")):
        raise BadInput(name, "is not the name of a module", remedy)
    spec = _spec(name)
    if spec is not None and spec.submodule_search_locations is not None:
        spec = _spec(f"{name}.__main__")
    if spec is None or spec.origin is None or not spec.origin.endswith(".py"):
        raise BadInput(name, "no such module", remedy)
    return Path(shown(Path(spec.origin)))


def _spec(name: str) -> ModuleSpec | None:
    places = [os.getcwd(), *sys.path]
    spec = None
    for part in name.split("."):
        spec = PathFinder.find_spec(part, places)
        if spec is None:
            return None
        places = list(spec.submodule_search_locations or ())
    return spec


def started_as(script: Path, text: str) -> tuple[Path, str] | None:
    """How a script is started that `python script.py` cannot run, because it imports relatively to its package.

    Args:
        script: its real path. text: its code.
    Returns:
        The folder where its package lies, and its name from there (`package.train`); None for any other script.
    """
    levels = _levels(text)
    if not levels:
        return None
    above = next(
        folder for folder in script.parents if not (folder / "__init__.py").exists() or folder == folder.parent
    )
    folder = min(above, script.parents[min(levels, len(script.parents) - 1)], key=lambda path: len(path.parts))
    parts = script.relative_to(folder).with_suffix("").parts
    if not all(part.isidentifier() for part in parts):
        return None
    return folder, ".".join(parts[:-1] if parts[-1] == "__main__" else parts)


def _levels(text: str) -> int:
    """How many packages up the imports of a script go; 0 if none is relative."""
    try:
        nodes = index(parsed(text)).nodes
    except (SyntaxError, ValueError, RecursionError):
        return 0
    caught = {inner for node in nodes if isinstance(node, ast.Try) for inner in walk(node)}
    return max((n.level for n in nodes if isinstance(n, ast.ImportFrom) and n not in caught), default=0)
