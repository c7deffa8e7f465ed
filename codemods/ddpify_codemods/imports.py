"""The local files that a script imports."""

from __future__ import annotations

import ast
import os
import re
from collections.abc import Iterator
from functools import lru_cache
from pathlib import Path

from .facts.header import main_guard
from .facts.imported_by_name import attributes_of, defines, imports_by_name, pattern
from .facts.tree import KEPT, of_kinds, parsed
from .folders import folder_of, is_module, is_package, module_files, remembered


def local_modules(script: Path, text: str, root: Path | None = None, starts: bool = True) -> list[Path]:
    """The existing .py files beside a script that it imports, directly, in the order of its imports.

    Args: the file, its text, and the folder of the script that gets started, from which absolute imports are resolved
    (the file's own folder where it is that script). starts: whether the file may be that script: what stands below
    `if __name__ == "__main__":` is run in that one alone. A local file shadows an installed package of the same name,
    as it does when Python runs the script.
    Returns their paths, without repeats and without the file itself; none for a text that does not parse.
    """
    found: dict[str, None] = {}
    start = str(root or script.parent)
    for node in _statements(text, starts):
        if isinstance(node, ast.Import):
            for alias in node.names:
                found.update(dict.fromkeys(module_files(start, alias.name)))
        elif isinstance(node, ast.Call):
            found.update(dict.fromkeys(map(str, _named(node, text, script, Path(start)))))
        else:
            found.update(dict.fromkeys(_from(node, script, start)))
    return [_path(path) for path in found if path != str(script)]


@remembered
def _path(path: str) -> Path:
    """One object for each path: comparing two takes long."""
    return Path(path)


@lru_cache(maxsize=KEPT)
def _statements(text: str, starts: bool) -> tuple[ast.Import | ast.ImportFrom | ast.Call, ...]:
    """The imports of a file, also by a module's name; asked for once for each folder that they may start at."""
    try:
        nodes = of_kinds(parsed(text), (ast.Import, ast.ImportFrom, ast.Call))
    except (SyntaxError, ValueError):
        return ()
    guard = None if starts else main_guard(parsed(text))
    below = {each for statement in guard.body for each in ast.walk(statement)} if guard is not None else set()
    return tuple(
        node
        for node in nodes
        if (isinstance(node, (ast.Import, ast.ImportFrom)) or (isinstance(node, ast.Call) and imports_by_name(node)))
        and node not in below
    )


def _named(call: ast.Call, text: str, script: Path, root: Path) -> Iterator[Path]:
    """The files that a call may import by a name of which a part is known in the run only."""
    name = pattern(call.args[0])
    folder = root
    if name.startswith("."):
        anchor = pattern(call.args[1]) if len(call.args) > 1 else ""
        folder = root.joinpath(*anchor.split(".")) if anchor.isidentifier() else script.parent
        for _ in range(len(name) - len(name.lstrip(".")) - 1):
            folder = folder.parent
        name = name.lstrip(".")
    *packages, module = name.split(".")
    if not re.fullmatch(r"[\w*]+(\.[\w*]+)*", name):
        return
    if not packages and module == "*" and folder == root:  # any module there is: those that have what is taken of it
        taken = attributes_of(parsed(text), call)
        yield from (each for each in sorted(root.glob("*.py")) if taken and each != script and _has(each, taken))
        return
    for place in folder.glob("/".join(packages)) if packages else [folder]:
        if place.is_dir() and packages:
            yield from map(Path, module_files(str(folder), ".".join(place.relative_to(folder).parts)))
        for path in sorted(place.glob(f"{module}.py")) + sorted(place.glob(f"{module}/__init__.py")):
            if path.name != "__init__.py" or path.parent != place:
                yield path


def _has(path: Path, names: frozenset[str]) -> bool:
    try:
        text = path.read_text(encoding="utf-8")
        return all(name in text for name in names) and defines(parsed(text), names)
    except (SyntaxError, ValueError, OSError):
        return False


def _from(node: ast.ImportFrom, script: Path, root: str) -> Iterator[str]:
    folder = str(script.parents[min(node.level, len(script.parents)) - 1]) if node.level else root
    if node.level and not node.module:
        above, name = os.path.split(folder)
        yield from [os.path.join(folder, "__init__.py")] if is_package(above, name) else []
    yield from module_files(folder, node.module or "")
    inside = folder_of(folder, node.module or "")
    for alias in node.names if inside else ():
        if alias.name == "*":
            yield from _exported(inside)
        elif is_module(inside, alias.name):
            yield from module_files(folder, f"{node.module}.{alias.name}" if node.module else alias.name)


def _exported(package: str) -> Iterator[str]:
    """The modules that `from package import *` imports: those in its `__all__`, or all if only the run knows it."""
    init = Path(package, "__init__.py")
    try:
        text = init.read_text(encoding="utf-8") if init.is_file() else ""
        tree = parsed(text) if "__all__" in text else ast.Module([], [])
    except (SyntaxError, ValueError, OSError):
        return
    for node in tree.body:
        if isinstance(node, ast.Assign) and getattr(node.targets[0], "id", "") == "__all__":
            if isinstance(node.value, (ast.List, ast.Tuple)):
                names = [str(each.value) for each in node.value.elts if isinstance(each, ast.Constant)]
            else:
                names = sorted(path.stem for path in init.parent.glob("*.py") if path != init)
            for name in names:
                if is_module(package, name):
                    yield from module_files(package, name)
