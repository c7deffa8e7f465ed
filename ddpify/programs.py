"""Which programs there are: a script that gets started, and the local modules that it reaches."""

from __future__ import annotations

import os
import re
from collections import deque
from collections.abc import Callable, Collection, Iterable, Mapping, Sequence
from dataclasses import dataclass
from functools import lru_cache
from pathlib import Path

from ddpify_codemods.folders import listing
from ddpify_codemods.search_path import Added

from ddpify.files import Source

# The local modules that a file imports directly, absolute imports taken from a folder.
Imports = Callable[[Path, Path, bool], Sequence[Path]]
# The folders that a file puts on sys.path.
Additions = Callable[[Path], Sequence[Added]]

# What pytest takes for a test: tests train too, but nobody starts them on many devices.
_TEST = re.compile(r"test_.*\.py|.*_test\.py|conftest\.py")


@dataclass(frozen=True)
class Program:
    """A script and what it imports: `files` begins with the script itself. roots: where absolute imports are found."""

    files: tuple[Path, ...]
    roots: tuple[Path, ...] = ()

    @property
    def entry(self) -> Path:
        """The file that gets started."""
        return self.files[0]


def program(entry: Path, imports: Imports, added: Additions) -> Program:
    """The program that a script starts.

    Args:
        entry: the script. imports: gives the local modules of a file, from a folder on, with or without those that it
            imports below its main guard, which counts in the script alone. added: gives the folders that a file puts on
            sys.path.
    Returns:
        The script, then every local module that it reaches, each once, the nearest first.
    """
    files = {entry: None}
    waiting = deque([entry])
    roots = found_from(entry, [])
    known: dict[Added, None] = {}
    while waiting:
        file = waiting.popleft()
        new = [folder for folder in added(file) if folder not in known and not _is_installed(folder.folder)]
        if new:  # what was read before may find more now
            known.update(dict.fromkeys(new))
            roots = found_from(entry, list(known))
            waiting = deque(files)
        for module in _found_by(imports, file, tuple(roots), file == entry):
            if module not in files:
                files[module] = None
                waiting.append(module)
    return Program(tuple(files), tuple(roots))


@lru_cache(maxsize=8192)
def _found_by(imports: Imports, file: Path, roots: tuple[Path, ...], starts: bool) -> tuple[Path, ...]:
    """The local modules that a file imports, each from the first folder of the path that has it."""
    found = {
        module: None
        for number, root in enumerate(roots)
        for module in imports(file, root, starts)
        if not _is_found_before(module, root, roots[:number])
    }
    return tuple(found)


def found_from(entry: Path, added: Sequence[Added]) -> list[Path]:
    """Where Python looks for absolute imports: beside the script, in what it puts on sys.path, on PYTHONPATH, above its
    package (`python -m package.script`), or in a folder above that is on the path in a way that nobody can read here,
    up to the project's root; or in its `src`."""
    above = next(folder for folder in entry.parents if not (folder / "__init__.py").exists() or folder == folder.parent)
    project = _project(entry)
    here = Path.cwd()
    if len(project) == 1 and here in entry.parents:  # nothing marks a root: where the user stands, scripts are started
        project = list(entry.parents)[: list(entry.parents).index(here) + 1]
    installed = [folder / "src" for folder in project if (folder / "src").is_dir()]  # `pip install -e .`
    front = [each.folder for each in reversed(added) if each.first]
    back = [each.folder for each in added if not each.first]
    return list(dict.fromkeys((*front, entry.parent, *_python_path(entry), *back, above, *project, *installed)))


def _python_path(entry: Path) -> list[Path]:
    """The folders of PYTHONPATH that belong to the project of a script; those of others are libraries."""
    words = os.environ.get("PYTHONPATH", "").split(os.pathsep)
    folders = [Path(word).resolve() for word in words if word and Path(word).is_dir()]
    return [folder for folder in folders if not _is_installed(folder) and _owner(folder) in (None, _owner(entry))]


def _owner(path: Path) -> Path | None:
    """The root of the repository that a file or folder lies in, else of its distribution."""
    folders = (path, *path.parents)
    for marks in ((".git",), ("pyproject.toml", "setup.py")):
        for folder in folders:
            if any((folder / mark).exists() for mark in marks):
                return folder
    return None


def _is_installed(folder: Path) -> bool:
    library = Path(os.__file__).parent
    if {"site-packages", "dist-packages"} & {*folder.parts} or folder.is_relative_to(library):
        return True
    return (folder / "ddpify_runtime").is_dir() or any(folder.glob("*.dist-info"))  # by pip install --target


def _is_found_before(module: Path, root: Path, roots: Iterable[Path]) -> bool:
    """Whether Python would have taken a module of that name from an earlier folder of its path."""
    top = _top(module, root)
    return bool(top) and any(_holds(str(folder), top) for folder in roots)


@lru_cache(maxsize=8192)
def _top(module: Path, root: Path) -> str:
    """The package or module in a folder that a file belongs to; "" for a file that lies elsewhere."""
    return module.relative_to(root).parts[0].removesuffix(".py") if module.is_relative_to(root) else ""


def _holds(folder: str, top: str) -> bool:
    """Whether a folder has a module of that name, or a folder with modules."""
    here = listing(folder)
    if f"{top}.py" in here.files:
        return True
    return top in here.folders and any(name.endswith(".py") for name in listing(os.path.join(folder, top)).files)


def find_programs(sources: Mapping[Path, Source], imports: Imports, added: Additions) -> list[Program]:
    """The training programs among some files.

    A file is started if it or a module of it mentions torch, if it looks like a script (`__main__`) or holds or reaches
    a training loop (`.backward(`), and if it is not a module of another such file. A script with a loop of its own is
    always started: others may import it only for its model.

    Args:
        sources: the files by their real paths.
        imports: gives the local modules of a file. added: gives the folders that a file puts on sys.path.
    Returns:
        The programs, in the order of `sources`. A script without a loop, whose loops all lie in scripts of their own
        (an evaluation that imports `train.py`), is not one.
    """
    guarded = {path for path, source in sources.items() if "__main__" in source.text}
    looping = {path for path, source in sources.items() if ".backward(" in source.text}
    torch = {path for path, source in sources.items() if "torch" in source.text}
    reached = {path: program(path, imports, added) for path in sources if _may_start(path)}
    starts = [
        path
        for path, found in reached.items()
        if torch.intersection(found.files) and (path in guarded or looping.intersection(found.files))
    ]
    scripts = guarded & looping
    inside = {path: frozenset(found.files) for path, found in reached.items()}

    def is_left_to_others(path: Path) -> bool:
        loops = looping.intersection(reached[path].files)
        return path not in loops and bool(loops) and loops <= scripts

    def is_started(path: Path) -> bool:
        return path in scripts or not (_imported(path, starts, inside, guarded) or is_left_to_others(path))

    return [reached[path] for path in starts if is_started(path)]


def _may_start(path: Path) -> bool:
    return not _TEST.fullmatch(path.name) and path.name not in ("__init__.py", "setup.py")


def _imported(
    path: Path, starts: Iterable[Path], inside: Mapping[Path, Collection[Path]], guarded: Collection[Path]
) -> bool:
    def order(file: Path) -> tuple[bool, Path]:
        return file not in guarded, file

    # Of two files that import each other, the one with a `__main__` (else the first by name) is the script.
    return any(
        path in inside[other] and not (other in inside[path] and order(path) < order(other))
        for other in starts
        if other is not path
    )


def importer(module: Source, read: Callable[[Path], Source | None], imports: Imports) -> Path | None:
    """A file that imports this one, if this one is a module: it has no `__main__` and a neighbour uses it.

    Args:
        module: the file in question.
        read: gives the source of a path, None if it cannot be read. imports: gives the local modules of a file.
    Returns:
        The first such file of its folder, or of those above it up to the project's root; None for a script.
    """
    if "__main__" in module.text:
        return None
    word = module.path.parent.name if module.path.name == "__init__.py" else module.path.stem
    for folder in _project(module.path):
        for path in sorted(folder.glob("*.py")):
            if path == module.path or _TEST.fullmatch(path.name):
                continue
            source = read(path)
            if source and word in source.text and module.path in imports(path, path.parent, True):
                return path
    return None


def _project(path: Path) -> list[Path]:
    folders = list(path.parents)
    for count, folder in enumerate(folders, start=1):
        if (folder / "pyproject.toml").exists() or (folder / ".git").exists():
            return folders[:count]
    owner = _owner(path)
    return folders[: folders.index(owner) + 1] if owner in folders else folders[:1]
