"""The local files that a script imports."""

from __future__ import annotations

import ast
import warnings
from collections.abc import Iterator
from functools import lru_cache
from pathlib import Path


def local_modules(script: Path, text: str, root: Path | None = None) -> list[Path]:
    """The existing .py files beside a script that it imports, directly, in the order of its imports.

    Args: the file, its text, and the folder of the script that gets started, from which absolute imports are resolved
    (the file's own folder where it is that script). A local file shadows an installed package of the same name, as it
    does when Python runs the script.
    Returns their paths, without repeats and without the file itself; none for a text that does not parse.
    """
    found: dict[Path, None] = {}
    for node in _statements(text):
        if isinstance(node, ast.Import):
            for alias in node.names:
                found.update(dict.fromkeys(_resolve(root or script.parent, alias.name.split("."))))
        else:
            found.update(dict.fromkeys(_from(node, script, root or script.parent)))
    return [path for path in found if path != script]


@lru_cache(maxsize=256)
def _statements(text: str) -> tuple[ast.Import | ast.ImportFrom, ...]:
    """The import statements of a file, which is asked for once per folder that absolute imports may start at."""
    try:
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")
            tree = ast.parse(text)
    except (SyntaxError, ValueError):
        return ()
    return tuple(node for node in ast.walk(tree) if isinstance(node, (ast.Import, ast.ImportFrom)))


def _from(node: ast.ImportFrom, script: Path, root: Path) -> Iterator[Path]:
    folder = script.parent
    for _ in range(node.level - 1):
        folder = folder.parent
    if not node.level:
        folder = root
    parts = node.module.split(".") if node.module else []
    if node.level and not parts and (folder / "__init__.py").is_file():
        yield folder / "__init__.py"
    yield from _resolve(folder, parts)
    for alias in node.names:
        if alias.name != "*":
            submodule = list(_resolve(folder, [*parts, alias.name]))
            yield from submodule if len(submodule) > 0 and _is_module(folder.joinpath(*parts, alias.name)) else ()


def _is_module(path: Path) -> bool:
    return path.with_name(f"{path.name}.py").is_file() or (path / "__init__.py").is_file()


def _resolve(folder: Path, parts: list[str]) -> Iterator[Path]:
    """The files that Python runs for `a.b.c`: the packages' __init__.py on the way, and the module."""
    for part in parts:
        package = folder / part
        if (package / "__init__.py").is_file():
            yield package / "__init__.py"
        elif package.with_name(f"{part}.py").is_file():
            yield package.with_name(f"{part}.py")
            return
        elif not package.is_dir():
            return
        folder = package
