"""One reading of each file: what the rules see of it, kept for all programs that share it."""

from __future__ import annotations

import ast
import re
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from functools import lru_cache
from pathlib import Path

from .facts.for_samples import for_samples
from .facts.header import main_guard, module_level_work
from .facts.inherited import inherited
from .facts.inherited_init import inherited_init
from .facts.missing_imports import is_package_of, missing_imports
from .facts.reach import never_used
from .facts.script import Script
from .facts.tree import KEPT, of_kinds, parsed
from .runtime_names import RUNTIME
from .view import View, view

_JOIN = "init_process_group"


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

    alone: it as the rules see it, without what other files say. defined: the functions, classes and methods in it.
    names: these and every name, attribute and import in it. joins, asks: whether it names `init_process_group`, or
    mentions `is_initialized`. view: what is known of it if it is converted.
    """

    alone: Script
    defined: frozenset[str]
    names: frozenset[str]
    joins: bool
    asks: bool
    view: View | None


@dataclass(frozen=True)
class _Unfound:
    """The imports of a file that find nothing, each with its line and whether the project has a package of that name;
    and where they were looked for, which makes no other difference."""

    imports: tuple[tuple[int, str, bool], ...]
    roots: tuple[Path, ...] = field(compare=False)


def parse(path: Path, text: str) -> ast.Module:
    """The syntax tree of a file. Raises SourceError for a text that is not Python 3."""
    try:
        return parsed(text)
    except SyntaxError as error:
        raise SourceError(path, error.lineno or 1, f"not valid Python 3: {error.msg}{_advice(error)}") from error
    except (ValueError, RecursionError) as error:
        raise SourceError(path, 1, f"cannot be read as Python: {error}") from error


def _advice(error: SyntaxError) -> str:
    """What to do about a line that older Python, or IPython, takes."""
    line = (error.text or "").strip()
    if re.search(r"\basync\s*=", line):
        return "; async is a keyword since Python 3.7, and the argument of .cuda() is non_blocking now"
    if line.startswith(("%", "!")):
        return "; a command of IPython, which a script cannot have: take it out"
    return ""


def read(program: Mapping[Path, str], roots: tuple[Path, ...] = ()) -> tuple[dict[Path, View], list[Script]]:
    """What the rules see of each file of a program.

    Args: the texts, that of the script which gets started first; the folders where absolute imports are found.
    Returns the views of the files that are converted already, and all files.
    Raises SourceError for a file that is not Python 3.
    """
    files = {path: _file(path, text) for path, text in program.items()}
    views = {path: file.view for path, file in files.items() if file.view is not None}
    defined = frozenset().union(*(file.defined for file in files.values()))
    entry = next(iter(program))
    unused = _unused(list(files.values())) if any(file.joins for file in files.values()) else {}
    joins = any(file.joins and not unused.get(file.alone) for file in files.values())
    asks = any(file.asks for file in files.values()) and not joins
    libraries = inherited([file.alone for file in files.values()], defined)
    called = for_samples([file.alone for file in files.values()])
    inheriting = inherited_init([file.alone for file in files.values()])
    modules = frozenset(name for path in program for name in _imported_as(path, (entry.parent, *roots)))
    scripts = []
    for path, file in files.items():  # told only what concerns it, so that other programs find the same object
        names = file.names.union(*(name.split(".") for _, name in libraries[path]))
        known = (defined & names, _unfound(file.alone, roots), libraries[path], asks, bool(views))
        of_others = called[file.alone], inheriting[file.alone] & names, modules & names
        own = unused.get(file.alone, frozenset()), *of_others
        scripts.append(_script(file, path == entry, *known, *own))
    return views, scripts


def _imported_as(path: Path, roots: Sequence[Path]) -> Iterator[str]:
    """The first name by which a file is imported from each folder where imports are found: `utils` of utils/log.py."""
    for root in roots:
        if path.is_relative_to(root):
            yield path.relative_to(root).parts[0].removesuffix(".py")


def _unused(files: Sequence[_File]) -> Mapping[Script, frozenset[str]]:
    """The functions that the program never calls, of the files that join a process group in one of these alone."""
    found = {}
    for script, names in never_used([file.alone for file in files]).items():
        called = [node for node in script.nodes if getattr(node, "id", getattr(node, "attr", "")) == _JOIN]
        functions = [node for node in script.tree.body if getattr(node, "name", "") in names]
        inside = {part for function in functions for part in ast.walk(function)}
        if called and inside.issuperset(called):
            found[script] = names
    return found


@lru_cache(maxsize=KEPT)
def _file(path: Path, text: str) -> _File:
    original = parse(path, text)
    seen = view(original, text) if RUNTIME in text else None
    kinds = (ast.FunctionDef, ast.AsyncFunctionDef, ast.ClassDef)
    defined = frozenset(node.name for node in of_kinds(original, kinds))  # type: ignore[attr-defined]
    tree = seen.tree if seen else original
    alone = Script(path, text, tree, is_entry=False, defined=defined, view=seen)
    used = {node.id for node in alone.find(ast.Name)} | {node.attr for node in alone.find(ast.Attribute)}
    imported = {part for alias in alone.find(ast.alias) for part in alias.name.split(".")}
    asks = re.search(r"\bis_initialized\b", text) is not None
    return _File(alone, defined, defined | used | imported, _JOIN in used, asks, seen)


@lru_cache(maxsize=KEPT)
def _unfound(alone: Script, roots: tuple[Path, ...]) -> _Unfound:
    imports = ((line, name, is_package_of(name, roots)) for line, name in missing_imports(alone, roots))
    return _Unfound(tuple(imports), roots)


@lru_cache(maxsize=KEPT)
def _script(
    file: _File,
    is_entry: bool,
    defined: frozenset[str],
    unfound: _Unfound,
    libraries: tuple[tuple[str, str], ...],
    asks: bool,
    in_converted: bool,
    unused: frozenset[str],
    called: frozenset[str],
    inheriting: frozenset[str],
    modules: frozenset[str],
) -> Script:
    """A file in its program: the very same object for every program in which it means the same."""
    runs = is_entry and _runs_something(file.alone.tree)
    roots = unfound.roots if unfound.imports else ()
    known = replace(file.alone, is_entry=runs, defined=defined, roots=roots, inherited=libraries, inheriting=inheriting)
    own = replace(known, only_asks_for_group=asks, in_converted=in_converted)
    return replace(own, never_used=unused, for_samples=called, modules=modules)


def _runs_something(tree: ast.Module) -> bool:
    return main_guard(tree) is not None or bool(module_level_work(tree))
