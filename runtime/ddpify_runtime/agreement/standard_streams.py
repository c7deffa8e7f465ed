"""Where the output of a rank goes: rank 0 speaks, the others are silent (HAZARDS I1)."""

from __future__ import annotations

import logging
import os
import stat
import sys
from contextlib import suppress
from io import TextIOWrapper, UnsupportedOperation
from typing import Any, TextIO

# What this process was started with: reasons for its end go there on every rank.
STDERR: TextIO | None = sys.__stderr__

_nowhere: list[TextIOWrapper] = []  # kept: a stream that nothing holds any more would close what was made of its buffer


def silence() -> None:
    """Send what is written to stdout and stderr nowhere, also what was told to write there before: log handlers, bars,
    `from sys import stdout`, `def show(text, file=sys.stderr)`; and log files that are opened from now on.

    A script may close the one and go on with the other, or go back to `sys.__stdout__`.
    """
    global STDERR
    stdout, stderr = _open(), _open()
    if STDERR is sys.__stderr__:
        STDERR = _again(STDERR)
    for stream in (sys.stdout, sys.__stdout__):
        _mute(stream, stdout)
    for stream in (sys.stderr, sys.__stderr__):
        _mute(stream, stderr)
    sys.stdout = sys.__stdout__ = stdout  # type: ignore[misc]
    sys.stderr = sys.__stderr__ = stderr  # type: ignore[misc]
    logging.FileHandler._open = _open_for  # type: ignore[method-assign, assignment]  # of libraries, too
    os.fsync = _but_for_devices(os.fsync)
    if hasattr(os, "fdatasync"):
        os.fdatasync = _but_for_devices(os.fdatasync)


def _again(stream: TextIO | None) -> TextIO | None:
    """Another stream to where one goes; none where that is no file."""
    with suppress(OSError, UnsupportedOperation, ValueError):  # the latter of one that is closed
        if stream is not None:
            return open(stream.fileno(), "w", 1, stream.encoding, stream.errors, closefd=False)
    return None


def _mute(stream: Any, nowhere: TextIOWrapper) -> None:
    """Let a stream of Python's own, which others may hold, write nowhere."""
    if isinstance(stream, TextIOWrapper):
        stream.write, stream.writelines = nowhere.write, nowhere.writelines  # type: ignore[method-assign]


def leave_silent() -> None:
    """At exit: take the script's own streams away. Nobody reads them, and one that fails would change the status."""
    if _nowhere:
        sys.stdout, sys.stderr = _open(), _open()


def _open() -> TextIOWrapper:
    _nowhere.append(open(os.devnull, "w"))  # noqa: SIM115
    return _nowhere[-1]


def _open_for(handler: logging.FileHandler) -> TextIOWrapper:
    """What a log handler opens in the place of its file, and closes."""
    return open(os.devnull, "w", encoding=handler.encoding, errors=handler.errors)


def _but_for_devices(sync: Any) -> Any:
    """A file of rank 0 is the null device on the others, which cannot be synced."""

    def call(file: Any) -> None:
        descriptor = file if isinstance(file, int) else file.fileno()
        if not stat.S_ISCHR(os.fstat(descriptor).st_mode):
            sync(descriptor)

    return call
