"""What the paths on the command line stand for."""

from __future__ import annotations

import re
import sys
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path

from ddpify import COMMANDS, files
from ddpify.config import Settings, did_you_mean
from ddpify.files import BadInput, Problem, Source, shown

NO_SETTINGS = Settings()
STDIN = "-"
STDIN_NAME = "<stdin>"


@dataclass(frozen=True)
class Inputs:
    """The files to look at.

    named: those given by name. sources: these and what folders hold that may matter, by real path.
    problems: what is wrong with files that cannot be read. folders: the folders that were given. excluded: those
    given by name that the settings exclude.
    """

    named: tuple[Path, ...]
    sources: Mapping[Path, Source]
    problems: tuple[Problem, ...]
    folders: tuple[Path, ...]
    excluded: tuple[str, ...] = ()

    @property
    def single(self) -> bool:
        """Whether one file was given by name and nothing else."""
        return len(self.named) + len(self.problems) == 1 and not self.folders and not self.excluded


def gather(paths: Sequence[str], settings: Settings = NO_SETTINGS) -> Inputs:
    """Read what the command line names; a file named twice counts once.

    Args:
        paths: the words: files, folders, or "-" alone for standard input. settings: what they exclude is left out.
    Returns:
        The inputs.
    Raises:
        BadInput: a path does not exist, is a notebook or a folder without Python files.
    """
    if list(paths) == [STDIN]:
        path = Path.cwd() / STDIN_NAME
        return Inputs((path,), {path: files.decode(sys.stdin.buffer.read(), path, STDIN_NAME)}, (), ())
    if STDIN in paths:
        raise BadInput("ddpify", "standard input (-) together with other paths", "give it alone")
    folders = tuple(Path(path) for path in dict.fromkeys(paths) if Path(path).is_dir())
    named = {_file(path).resolve(): str(Path(path)) for path in paths if Path(path) not in folders}
    excluded = {path: name for path, name in named.items() if settings.excludes(path)}
    named = {path: name for path, name in named.items() if path not in excluded}
    found = {path.resolve(): path for folder in folders for path in _worth_parsing(_python_files(folder, settings))}
    sources, problems = {}, []
    for path, name in [*named.items(), *((path, str(name)) for path, name in found.items() if path not in named)]:
        try:
            sources[path] = files.read(path, name if path in named else shown(path))
        except BadInput as error:
            problems.append(error.problem)
    return Inputs(
        tuple(path for path in named if path in sources), sources, tuple(problems), folders, tuple(excluded.values())
    )


def _file(name: str) -> Path:
    path = Path(name)
    if path.suffix == ".ipynb":
        remedy = "export it first: jupyter nbconvert --to script"
        raise BadInput(name, "a notebook cannot be converted", remedy)
    if not path.exists():
        hint = did_you_mean(name, COMMANDS) if name.isalpha() else ""
        what = f"no such file, folder or command{hint}" if hint else "no such file or folder"
        raise BadInput(name, what, "check the spelling")
    if not path.is_file():
        raise BadInput(name, "not a regular file", "give a script, or - for standard input")
    return path


def _python_files(folder: Path, settings: Settings) -> list[Path]:
    found = files.discover(folder, settings.excludes)
    if not found and not files.discover(folder):
        raise BadInput(str(folder), "no Python files in this folder", "give the folder that holds the scripts")
    return found


def _worth_parsing(paths: Iterable[Path]) -> list[Path]:
    """Those that mention torch, and those that mention a module with a training loop: they may start it."""
    raw = {path: files.peek(path) for path in paths}
    torch = {path for path, data in raw.items() if b"torch" in data}
    loops = {re.escape(path.stem.encode()) for path in torch if b".backward(" in raw[path]}
    word = rb"\b(?:" + b"|".join(sorted(loops)) + rb")\b"
    starts = re.compile(rb"\bimport\b.*" + word + rb"|\bfrom\b.*" + word)
    return [path for path in raw if path in torch or (loops and starts.search(raw[path]))]
