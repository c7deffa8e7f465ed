"""A copy of the project for a run: what a script writes lands there, what it reads by a relative path is there.

Files are copied, since a script may open any of them for writing. What `--link` names, and folders that are links in
the project already (data, as a rule), are linked; the recorder keeps Python code from writing there.
"""

from __future__ import annotations

import contextlib
import os
import shutil
from collections.abc import Collection, Iterator, Mapping
from dataclasses import dataclass
from pathlib import Path

from ddpify.files import BadInput, shown

LIMIT = 2 * 2**30  # bytes that are copied, at most
CACHES = (
    "__pycache__",
    ".git",
    ".hg",
    "node_modules",
    ".mypy_cache",
    ".pytest_cache",
    ".ruff_cache",
    ".ipynb_checkpoints",
)

State = tuple[int, int]  # of a file: its time of change in ns, its size in bytes


@dataclass(frozen=True)
class Project:
    """What gets copied: `files` of `root`, by relative path, and its `folders`, empty ones too; `links` are linked."""

    root: Path
    files: tuple[Path, ...]
    links: tuple[Path, ...]
    folders: tuple[Path, ...]

    @property
    def protected(self) -> tuple[Path, ...]:
        """The folders that a run must not write to."""
        return (self.root, *((self.root / link).resolve() for link in self.links))


def survey(root: Path, links: Collection[Path]) -> Project:
    """Return what a copy of a folder holds: all but caches and virtual environments.

    Args:
        root: the folder, a real path. links: files or folders in it that the script only reads.
    Raises:
        BadInput: copying it would take more than LIMIT bytes, or a link lies elsewhere.
    """
    linked = set()
    for link in links:
        place = Path(os.path.abspath(link))
        if not place.exists() or not place.is_relative_to(root) or place == root:
            raise BadInput(str(link), f"--link names something that is not in {shown(root)}", "check the spelling")
        linked.add(place)
    copied, entered, total = [], [], 0
    for folder, folders, names in os.walk(root):
        here = Path(folder)
        entered.append(here)
        linked |= {here / name for name in folders if (here / name).is_symlink()}
        folders[:] = sorted(name for name in folders if here / name not in linked and not _is_cache(here / name))
        for path in (here / name for name in sorted(names)):
            with contextlib.suppress(FileNotFoundError):  # others may work in the folder
                if path.is_file() and path not in linked:
                    total += path.stat().st_size
                    copied.append(path)
        if total > LIMIT:
            raise BadInput(
                shown(root), f"more than {LIMIT // 2**30} GB to copy for each run", _what_to_link(copied, root)
            )
    return Project(root, *(tuple(path.relative_to(root) for path in paths) for paths in (copied, linked, entered)))


def _is_cache(folder: Path) -> bool:
    return folder.name in CACHES or (folder / "pyvenv.cfg").exists()


def _what_to_link(files: Collection[Path], root: Path) -> str:
    heaviest = max(files, key=lambda path: path.stat().st_size)
    top = root / heaviest.relative_to(root).parts[0]
    return f"give --link {shown(top)} if the script only reads it"


def make(project: Project, folder: Path, changed: Mapping[Path, bytes]) -> None:
    """Fill a new folder.

    Args:
        project: what to copy. folder: where to. changed: real path of a file of the project -> what it becomes.
    """
    for name in project.folders:
        (folder / name).mkdir(parents=True, exist_ok=True)
    for name in project.files:
        place = folder / name
        if content := changed.get((project.root / name).resolve()):
            place.write_bytes(content)
        elif not (project.root / name).exists():  # somebody has removed it since
            continue
        else:
            shutil.copy2(project.root / name, place)
        place.chmod(place.stat().st_mode | 0o600)
    for name in project.links:
        (folder / name).symlink_to((project.root / name).resolve())


def states(folder: Path) -> dict[str, State]:
    """Return what tells whether a file of a folder was written since: relative path -> state."""
    return {path.relative_to(folder).as_posix(): state for path, state in _states(folder)}


def _states(folder: Path) -> Iterator[tuple[Path, State]]:
    for root, _, names in os.walk(folder):
        for path in (Path(root, name) for name in names):
            with contextlib.suppress(OSError):
                status = path.lstat()
                yield path, (status.st_mtime_ns, status.st_size)
