"""Cases of one kind that are too many for every change: each has its turn there, or comes by night."""

from __future__ import annotations

from collections.abc import Iterable
from typing import Any
from zlib import crc32

import pytest


def turn(name: str, turns: int = 2) -> int:
    """The turn that a case has by its name, of some of about equal size: the same whatever other cases there are."""
    return crc32(name.encode()) % turns


def in_turn(cases: Iterable[tuple[str, ...]], turns: int = 4) -> list[Any]:
    """Every case: one in so many at every change, which its words tell, and the others by night."""
    return [pytest.param(*case, marks=[pytest.mark.nightly] * bool(turn(" ".join(case), turns))) for case in cases]


def on_ranks(names: Iterable[str]) -> list[Any]:
    """Every case with its number of ranks: two or three at every change, which its name tells, and both by night."""
    return [
        pytest.param(name, ranks, marks=[] if ranks == 2 + turn(name) else [pytest.mark.nightly])
        for name in names
        for ranks in (2, 3)
    ]
