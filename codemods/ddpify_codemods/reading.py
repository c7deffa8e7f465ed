"""One reading of each file: what the rules see of it, kept for all programs that share it."""

from __future__ import annotations

import ast
import re
import warnings
from collections.abc import Mapping
from dataclasses import dataclass
from functools import lru_cache
from pathlib import Path

from .facts.header import main_guard, module_level_work
from .facts.inherited import inherited
from .facts.missing_imports import missing_imports
from .facts.script import KEPT, Script
from .view import View, view


class SourceError(Exception):
    """A file that is not valid Python 3, or not in a form that can be rewritten."""

    def __init__(self, path: Path, line: int, message: str) -> None:
        super().__init__(f"{path}:{line}: {message}")
        self.path = path
        self.line = line
        self.message = message


@dataclass(frozen=True, eq=False)
class _File:
    """A file by itself.

    tree: its syntax tree as the rules see it. defined: the functions, classes and methods in it. words: every word of
    its text. joins: whether it names `init_process_group`. view: what is known of it if it is converted.
    """

    tree: ast.Module
    defined: frozenset[str]
    words: frozenset[str]
    joins: bool
    view: View | None


def parse(path: Path, text: str) -> ast.Module:
    """The syntax tree of a file. Raises SourceError for a text that is not Python 3."""
    try:
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")  # the author's "\d" is not our business
            return ast.parse(text)
    except SyntaxError as error:
        raise SourceError(path, error.lineno or 1, f"not valid Python 3: {error.msg}") from error
    except (ValueError, RecursionError) as error:
        raise SourceError(path, 1, f"cannot be read as Python: {error}") from error


def read(program: Mapping[Path, str], roots: tuple[Path, ...] = ()) -> tuple[dict[Path, View], list[Script]]:
    """What the rules see of each file of a program.

    Args: the texts, that of the script which gets started first; the folders where absolute imports are found.
    Returns the views of the files that are converted already, and all files.
    Raises SourceError for a file that is not Python 3.
    """
    files = {path: _file(path, text) for path, text in program.items()}
    views = {path: file.view for path, file in files.items() if file.view is not None}
    defined = frozenset().union(*(file.defined for file in files.values()))
    joins = any(file.joins for file in files.values())
    asks = not joins and any("is_initialized" in file.words for file in files.values())
    entry = next(iter(program))
    alone = [Script(path, program[path], file.tree, path == entry, defined) for path, file in files.items()]
    libraries = inherited(alone)
    scripts = []
    for each in alone:  # told only what concerns it, so that other programs find the same object
        path, file = each.path, files[each.path]
        unfound = roots if next(missing_imports(each, roots), None) else ()
        known = (defined & file.words, unfound, libraries[path], asks, bool(views))
        scripts.append(_script(path, program[path], file, path == entry, *known))
    return views, scripts


@lru_cache(maxsize=KEPT)
def _file(path: Path, text: str) -> _File:
    original = parse(path, text)
    seen = view(original)
    kinds = (ast.FunctionDef, ast.AsyncFunctionDef, ast.ClassDef)
    defined = frozenset(node.name for node in ast.walk(original) if isinstance(node, kinds))
    tree = seen.tree if seen else original
    joins = any("init_process_group" in (getattr(node, "attr", ""), getattr(node, "id", "")) for node in ast.walk(tree))
    return _File(tree, defined, frozenset(re.findall(r"\w+", text)), joins, seen)


@lru_cache(maxsize=KEPT)
def _script(
    path: Path,
    text: str,
    file: _File,
    is_entry: bool,
    defined: frozenset[str],
    roots: tuple[Path, ...],
    libraries: tuple[tuple[str, str], ...],
    asks: bool,
    in_converted: bool,
) -> Script:
    """A file in its program: the very same object for every program in which it means the same."""
    runs = is_entry and _runs_something(file.tree)
    return Script(path, text, file.tree, runs, defined, roots, libraries, asks, file.view, in_converted)


def _runs_something(tree: ast.Module) -> bool:
    return main_guard(tree) is not None or bool(module_level_work(tree))
