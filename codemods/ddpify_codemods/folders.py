"""What lies in folders: listed once, for all programs whose imports are looked for in them."""

from __future__ import annotations

import contextlib
import os
from collections.abc import Callable
from dataclasses import dataclass
from functools import _lru_cache_wrapper, cache
from typing import Any, TypeVar

Value = TypeVar("Value")

_REMEMBERED: list[_lru_cache_wrapper[Any]] = []


def remembered(function: Callable[..., Value]) -> _lru_cache_wrapper[Value]:
    """A function of what lies in folders, whose values are kept until `forget` is called."""
    kept = cache(function)
    _REMEMBERED.append(kept)
    return kept


def forget() -> None:
    """Look again: files may have come or gone."""
    for kept in _REMEMBERED:
        kept.cache_clear()


@dataclass(frozen=True)
class Listing:
    """The names of the files and of the folders in a folder; and the names before the first dot of either."""

    files: frozenset[str]
    folders: frozenset[str]
    stems: frozenset[str]


@remembered
def listing(folder: str) -> Listing:
    """What lies in a folder; nothing, if it is none or cannot be read."""
    files, folders = set(), set()
    with contextlib.suppress(OSError), os.scandir(folder) as entries:
        for entry in entries:
            with contextlib.suppress(OSError):  # a link to itself
                if entry.is_dir():
                    folders.add(entry.name)
                elif entry.is_file():
                    files.add(entry.name)
    stems = {name.partition(".")[0] for name in (*files, *folders) if "." in name}
    return Listing(frozenset(files), frozenset(folders), frozenset(stems))


@remembered
def module_files(folder: str, name: str) -> tuple[str, ...]:
    """The files that Python runs for `import a.b.c`, looked for in a folder: the packages' __init__.py on the way, and
    the module; as many of them as there are."""
    found = []
    for part in name.split(".") if name else ():
        package = os.path.join(folder, part)
        if is_package(folder, part):
            found.append(os.path.join(package, "__init__.py"))
        elif f"{part}.py" in listing(folder).files:
            found.append(f"{package}.py")
            break
        elif part not in listing(folder).folders:
            break
        folder = package
    return tuple(found)


@remembered
def folder_of(folder: str, package: str) -> str:
    """The folder of the package `a.b.c`, looked for in a folder, which may have no __init__.py; "" if there is none."""
    for part in package.split(".") if package else ():
        if part not in listing(folder).folders:
            return ""
        folder = os.path.join(folder, part)
    return folder


def is_package(folder: str, name: str) -> bool:
    """Whether a folder holds a package of that name, with an __init__.py."""
    return name in listing(folder).folders and "__init__.py" in listing(os.path.join(folder, name)).files


def is_module(folder: str, name: str) -> bool:
    """Whether a folder holds a module or a package of that name."""
    return f"{name}.py" in listing(folder).files or is_package(folder, name)
