"""Cases of one kind that are too many for every change: each has its turn there, or comes by night."""

from __future__ import annotations

from zlib import crc32


def turn(name: str, turns: int = 2) -> int:
    """The turn that a case has by its name, of some of about equal size: the same whatever other cases there are."""
    return crc32(name.encode()) % turns
