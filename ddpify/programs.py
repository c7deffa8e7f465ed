"""Which programs there are: a script that gets started, and the local modules that it reaches."""

from __future__ import annotations

import re
from collections import deque
from collections.abc import Callable, Collection, Iterable, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path

from ddpify.files import Source

# The local modules that a file imports directly, absolute imports taken from a folder.
Imports = Callable[[Path, Path], Sequence[Path]]

# What pytest takes for a test: tests train too, but nobody starts them on many devices.
_TEST = re.compile(r"test_.*\.py|.*_test\.py|conftest\.py")


@dataclass(frozen=True)
class Program:
    """A script and what it imports: `files` begins with the script itself."""

    files: tuple[Path, ...]

    @property
    def entry(self) -> Path:
        """The file that gets started."""
        return self.files[0]


def program(entry: Path, imports: Imports) -> Program:
    """The program that a script starts.

    Args:
        entry: the script. imports: gives the local modules of a file.
    Returns:
        The script, then every local module that it reaches, each once, the nearest first.
    """
    files = {entry: None}
    waiting = deque([entry])
    roots = _roots(entry)
    while waiting:
        file = waiting.popleft()
        for number, root in enumerate(roots):
            for module in imports(file, root):
                if module not in files and not _is_found_before(module, root, roots[:number]):
                    files[module] = None
                    waiting.append(module)
    return Program(tuple(files))


def _roots(entry: Path) -> list[Path]:
    """Where Python looks for absolute imports: beside the script, above its package (`python -m package.script`), or
    in a folder above that is put on its path (`sys.path`, PYTHONPATH), up to the project's root; or in its `src`."""
    above = next(folder for folder in entry.parents if not (folder / "__init__.py").exists() or folder == folder.parent)
    project = _project(entry)
    here = Path.cwd()
    if len(project) == 1 and here in entry.parents:  # nothing marks a root: where the user stands, scripts are started
        project = list(entry.parents)[: list(entry.parents).index(here) + 1]
    installed = [folder / "src" for folder in project if (folder / "src").is_dir()]  # `pip install -e .`
    return list(dict.fromkeys((entry.parent, above, *project, *installed)))


def _is_found_before(module: Path, root: Path, roots: Iterable[Path]) -> bool:
    """Whether Python would have taken a module of that name from an earlier folder of its path."""
    if not module.is_relative_to(root):
        return False
    top = module.relative_to(root).parts[0].removesuffix(".py")
    return any((folder / f"{top}.py").is_file() or any((folder / top).glob("*.py")) for folder in roots)


def find_programs(sources: Mapping[Path, Source], imports: Imports) -> list[Program]:
    """The training programs among some files.

    A file is started if it or a module of it mentions torch, if it looks like a script (`__main__`) or holds or reaches
    a training loop (`.backward(`), and if it is not a module of another such file. A script with a loop of its own is
    always started: others may import it only for its model.

    Args:
        sources: the files by their real paths.
        imports: gives the local modules of a file.
    Returns:
        The programs, in the order of `sources`. A script without a loop, whose loops all lie in scripts of their own
        (an evaluation that imports `train.py`), is not one.
    """
    guarded = {path for path, source in sources.items() if "__main__" in source.text}
    looping = {path for path, source in sources.items() if ".backward(" in source.text}
    torch = {path for path, source in sources.items() if "torch" in source.text}
    reached = {path: program(path, imports) for path in sources if _may_start(path)}
    starts = [
        path
        for path, found in reached.items()
        if torch.intersection(found.files) and (path in guarded or looping.intersection(found.files))
    ]
    scripts = guarded & looping

    def is_left_to_others(path: Path) -> bool:
        loops = looping.intersection(reached[path].files)
        return path not in loops and bool(loops) and loops <= scripts

    def is_started(path: Path) -> bool:
        return path in scripts or not (_imported(path, starts, reached, guarded) or is_left_to_others(path))

    return [reached[path] for path in starts if is_started(path)]


def _may_start(path: Path) -> bool:
    return not _TEST.fullmatch(path.name) and path.name not in ("__init__.py", "setup.py")


def _imported(path: Path, starts: Iterable[Path], reached: Mapping[Path, Program], guarded: Collection[Path]) -> bool:
    def order(file: Path) -> tuple[bool, Path]:
        return file not in guarded, file

    # Of two files that import each other, the one with a `__main__` (else the first by name) is the script.
    return any(
        path in reached[other].files and not (other in reached[path].files and order(path) < order(other))
        for other in starts
        if other != path
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
            if source and word in source.text and module.path in imports(path, path.parent):
                return path
    return None


def _project(path: Path) -> list[Path]:
    folders = list(path.parents)
    for count, folder in enumerate(folders, start=1):
        if (folder / "pyproject.toml").exists() or (folder / ".git").exists():
            return folders[:count]
    return folders[:1]
