"""Folders in which Python code may not write."""

from __future__ import annotations

import functools
import os
import sys
from typing import Any

import torch


def protect(folders: list[str], scratch: str) -> None:
    """Let no Python code write to these folders: absolute paths and links may lead there from a scratch copy.

    Args:
        folders: real paths. scratch: where the copy lies, which may be in one of them.
    """

    def watch(event: str, args: tuple[Any, ...]) -> None:
        if event == "open":
            path, _, flags = args
            writes = isinstance(flags, int) and flags & (os.O_WRONLY | os.O_RDWR | os.O_CREAT | os.O_TRUNC)
        elif event in ("os.mkdir", "os.remove", "os.rmdir", "os.truncate", "os.rename", "shutil.rmtree"):
            path, writes = args[0], True
        else:
            return
        if not writes or not isinstance(path, str | bytes | os.PathLike):
            return
        above, name = os.path.split(os.path.abspath(os.fsdecode(path)))
        place = os.path.join(os.path.realpath(above), name)
        if event == "open":
            place = os.path.realpath(place)
        if place.startswith(scratch + os.sep):
            return
        if any(place == folder or place.startswith(folder + os.sep) for folder in folders):
            raise PermissionError(f"ddpify verify: the script writes to {place}, outside of the copy that it runs in")

    original = torch.save

    @functools.wraps(original)
    def save(obj: Any, f: Any, *args: Any, **kwargs: Any) -> None:
        if isinstance(f, str | os.PathLike):
            sys.audit("open", f, "wb", os.O_WRONLY)  # it writes by C++, which tells nobody
        original(obj, f, *args, **kwargs)

    torch.save = save
    sys.addaudithook(watch)
