"""Files as people keep them: found, read, and written back without changing anything but the code."""

from __future__ import annotations

import contextlib
import os
import stat
import tempfile
import tokenize
from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass
from io import BytesIO
from pathlib import Path

BOM = b"\xef\xbb\xbf"


@dataclass(frozen=True)
class Problem:
    """What is wrong with an input, where (`line` is 1-based, 0 for the whole file), and what to do about it."""

    path: str
    line: int
    message: str
    remedy: str


class BadInput(Exception):
    """Something that a person wrote cannot be used; `problem` says what to do."""

    def __init__(self, path: str, message: str, remedy: str, line: int = 0) -> None:
        super().__init__(message)
        self.problem = Problem(path, line, message, remedy)


@dataclass(frozen=True)
class Source:
    """One file: its real path, the name to show to people, its bytes, and its text (newlines untouched, no BOM)."""

    path: Path
    name: str
    raw: bytes
    text: str
    encoding: str

    def encode(self, code: str) -> bytes:
        """The bytes of `code`, encoded as this file is (same encoding, same BOM)."""
        return (BOM if self.raw.startswith(BOM) else b"") + code.encode(self.encoding)


def shown(path: Path) -> str:
    """A path as people read it: relative to the current folder if it lies there."""
    here = Path.cwd()
    return str(path.relative_to(here)) if path.is_relative_to(here) else str(path)


def discover(folder: Path, excludes: Callable[[Path], bool] = lambda path: False) -> list[Path]:
    """The Python files under a folder, sorted; hidden folders, virtual environments, caches are left out.

    Args:
        folder: where to look. excludes: whether a file or folder, by its real path, is left out too.
    Returns:
        Paths that begin with `folder`.
    Raises:
        BadInput: the folder, or one in it, cannot be read.
    """

    def refuse(error: OSError) -> None:
        raise BadInput(str(error.filename), f"cannot be read ({error.strerror})", "check its permissions")

    found = []
    for root, folders, names in os.walk(folder, onerror=refuse):
        folders[:] = [name for name in folders if _worth_a_look(Path(root, name))]
        folders[:] = [name for name in folders if not excludes(Path(root, name).resolve())]
        found += [
            path for path in map(Path(root).joinpath, names) if path.suffix == ".py" and not excludes(path.resolve())
        ]
    return sorted(path for path in found if path.is_file())


def _worth_a_look(folder: Path) -> bool:
    return (
        not folder.name.startswith(".")
        and folder.name not in ("__pycache__", "node_modules", "site-packages")
        and not (folder / "pyvenv.cfg").exists()
    )


def read(path: Path, name: str) -> Source:
    """Read a Python file.

    Args:
        path: its real path. name: how messages call it.
    Returns:
        The source.
    Raises:
        BadInput: it cannot be read, or its bytes are no text.
    """
    try:
        raw = path.read_bytes()
    except FileNotFoundError as error:
        raise BadInput(name, "no such file", "check the spelling") from error
    except IsADirectoryError as error:
        raise BadInput(name, "is a folder", "give the script in it") from error
    except OSError as error:
        raise BadInput(name, f"cannot be read ({error.strerror})", "check its permissions") from error
    return decode(raw, path, name)


def peek(path: Path) -> bytes:
    """The bytes of a file, to search before anything is parsed; empty if it cannot be read."""
    try:
        return path.read_bytes()
    except OSError:
        return b""


def decode(raw: bytes, path: Path, name: str) -> Source:
    """Make a source of bytes, by the rules of Python (BOM, encoding cookie, else UTF-8).

    Args:
        raw: the bytes. path: where they came from. name: how messages call it.
    Returns:
        The source.
    Raises:
        BadInput: the bytes are no text in the encoding that they declare, or would not come back as they were.
    """
    body = raw.removeprefix(BOM)
    if b"\0" in body:
        line = _line(body, body.index(b"\0"))
        raise BadInput(name, "NUL byte in the source", "save it as text, in UTF-8", line)
    encoding = "utf-8"
    try:
        encoding = tokenize.detect_encoding(BytesIO(raw).readline)[0].removesuffix("-sig")
        text = body.decode(encoding)
    except SyntaxError as error:
        try:
            body.decode("utf-8")
        except UnicodeDecodeError as undecodable:
            raise _not_text(undecodable, body, "utf-8", name) from error
        what = str(error.msg).removesuffix(f" for {name!r}")
        raise BadInput(name, what, "declare the encoding that the file is saved in", 1) from error
    except UnicodeDecodeError as error:
        raise _not_text(error, body, encoding, name) from error
    except (UnicodeError, LookupError) as error:
        raise BadInput(name, f"not readable as {encoding}", "save it in UTF-8", 1) from error
    source = Source(path, name, raw, text, encoding)
    if source.encode(text) != raw:
        raise BadInput(name, f"{encoding} does not give back the same bytes", "save it in UTF-8", 1)
    return source


def _not_text(error: UnicodeDecodeError, body: bytes, encoding: str, name: str) -> BadInput:
    what = f"byte 0x{body[error.start]:02x} is not {encoding}"
    remedy = "save it in UTF-8, or declare its encoding in the first line (# -*- coding: latin-1 -*-)"
    return BadInput(name, what, remedy, _line(body, error.start))


def _line(body: bytes, offset: int) -> int:
    return len(body[:offset].replace(b"\r\n", b"\n").replace(b"\r", b"\n").split(b"\n"))


def write_all(outputs: Mapping[Path, bytes], mode: int | None = None) -> None:
    """Write every file or none: all are staged beside their places before the first is replaced.

    Modes and (where allowed) owners are kept; a symbolic link stays one, what it points to is rewritten.

    Args:
        outputs: what to write where.
        mode: permission bits of a file that does not exist yet; default: what the umask gives.
    Raises:
        BadInput: a file cannot be written; all are as they were.
    """
    staged: list[tuple[Path, Path]] = []
    name = ""
    try:
        for path, data in outputs.items():
            name, real = shown(path), path.resolve()
            _refuse_read_only(real, name)
            staged.append((_stage(real, data, mode), real))
        _replace_all(staged)
    except OSError as error:
        place = shown(Path(error.filename2)) if error.filename2 else name
        raise BadInput(place, f"cannot be written ({error.strerror})", "nothing was written") from error
    finally:
        for temporary, _ in staged:
            temporary.unlink(missing_ok=True)


def _refuse_read_only(path: Path, name: str) -> None:
    # The bits are asked as well as the system, because root may write anything: a read-only file says "hands off".
    for place, command in ((path, name), (path.parent, str(path.parent))):
        if place.exists() and not (place.stat().st_mode & 0o222 and os.access(place, os.W_OK)):
            what = "is read-only" if place is path else "is in a read-only folder"
            raise BadInput(name, f"{what}, nothing was written", f"chmod u+w {command}")


def _stage(path: Path, data: bytes, mode: int | None) -> Path:
    handle, temporary = tempfile.mkstemp(dir=path.parent, prefix=".ddpify-")
    try:
        with open(handle, "wb") as file:
            file.write(data)
            file.flush()
            os.fsync(file.fileno())
        if path.exists():
            status = path.stat()
            _keep_owner(temporary, status)
            mode = stat.S_IMODE(status.st_mode)
        os.chmod(temporary, _default_mode() if mode is None else mode)
    except BaseException:
        os.unlink(temporary)
        raise
    return Path(temporary)


def _keep_owner(temporary: str, status: os.stat_result) -> None:
    if hasattr(os, "chown"):
        with contextlib.suppress(PermissionError):  # only root may give files away
            os.chown(temporary, status.st_uid, status.st_gid)


def _default_mode() -> int:
    umask = os.umask(0)
    os.umask(umask)
    return 0o666 & ~umask


def _replace_all(staged: Iterable[tuple[Path, Path]]) -> None:
    before: list[tuple[Path, bytes]] = []
    try:
        for temporary, path in staged:
            old = path.read_bytes() if path.exists() else None
            os.replace(temporary, path)
            if old is not None:
                before.append((path, old))
    except OSError:
        # Staging succeeded but a rename did not (a sticky folder, a mount that went away): put back what was replaced.
        for path, old in before:
            os.replace(_stage(path, old, None), path)
        raise
