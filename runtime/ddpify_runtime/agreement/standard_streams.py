"""Where the output of a rank goes: rank 0 speaks, the others are silent (HAZARDS I1)."""

from __future__ import annotations

import logging
import os
import stat
import sys
from io import TextIOWrapper
from typing import Any

from .log_settings import silence_loguru

# What this process was started with: reasons for its end go there on every rank.
STDERR = sys.__stderr__

_nowhere: list[TextIOWrapper] = []  # kept: a stream that nothing holds any more would close what was made of its buffer


def silence() -> None:
    """Send what is written to stdout and stderr nowhere, also by log handlers that exist already.

    A script may close the one and go on with the other, or go back to `sys.__stdout__`.
    """
    stdout, stderr = _open(), _open()
    for reference in logging._handlerList:  # type: ignore[attr-defined]
        handler = reference()
        # One that keeps no stream, such as logging.lastResort, follows sys.stderr by itself.
        stream = vars(handler).get("stream") if isinstance(handler, logging.StreamHandler) else None
        if stream is not None and stream in (sys.stdout, sys.stderr):
            handler.setStream(stdout if stream is sys.stdout else stderr)
    silence_loguru(stderr)
    if (progress := sys.modules.get("progress")) is not None:  # its bars draw to the stderr of its import
        progress.Infinite.file = stderr
    sys.stdout = sys.__stdout__ = stdout  # type: ignore[misc]
    sys.stderr = sys.__stderr__ = stderr  # type: ignore[misc]
    os.fsync = _but_for_devices(os.fsync)
    if hasattr(os, "fdatasync"):
        os.fdatasync = _but_for_devices(os.fdatasync)


def leave_silent() -> None:
    """At exit: take the script's own streams away. Nobody reads them, and one that fails would change the status."""
    if _nowhere:
        sys.stdout, sys.stderr = _open(), _open()


def _open() -> TextIOWrapper:
    _nowhere.append(open(os.devnull, "w"))  # noqa: SIM115
    return _nowhere[-1]


def _but_for_devices(sync: Any) -> Any:
    """A file of rank 0 is the null device on the others, which cannot be synced."""

    def call(file: Any) -> None:
        descriptor = file if isinstance(file, int) else file.fileno()
        if not stat.S_ISCHR(os.fstat(descriptor).st_mode):
            sync(descriptor)

    return call
