"""Where the program is: in the shared part of a training forward, or in something that one rank does alone."""

from __future__ import annotations

import threading
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field
from typing import Literal

from torch import Size, Tensor

from .collectives import Rows


@dataclass
class Region:
    """A forward that handles `local` of `total` samples.

    mode: "share" is the real thing; "record" is the whole batch on this rank, noting batch statistics, random draws and
    losses (with the shapes that they were computed from) in `statistics`, `draws` and `losses`; "replay" is this rank's
    samples with what was recorded, and communicates nothing.
    places: where the samples lie in what an operation with a given name and number of dims draws; None: it draws
    the same for every part. Learnt in "replay", used in "share".
    over_samples: for each loss in turn whether it is computed from samples. Learnt in "replay", used in "share".
    decisions: the numbers of the whole batch that decide something, noted in "record". decides: whether there were any.
    counts: for each line that adds integers (and their dims) whether they are of samples. Learnt and used alike.
    """

    mode: Literal["share", "record", "replay"]
    total: int
    local: int
    statistics: list[tuple[Tensor, Tensor]] = field(default_factory=list)
    draws: list[Tensor] = field(default_factory=list)
    losses: list[tuple[list[Size], Tensor]] = field(default_factory=list)
    places: dict[tuple[str, int], Rows | None] = field(default_factory=dict)
    over_samples: list[bool] = field(default_factory=list)
    decisions: list[tuple[Size, Tensor]] = field(default_factory=list)
    counts: dict[tuple[str, int, int], bool] = field(default_factory=dict)
    decides: bool = False


class _Here(threading.local):
    region: Region | None = None


_here = _Here()
_alone = 0  # of the process: what a rank does alone may start threads


def current() -> Region | None:
    """The region that this thread is in, or None."""
    return _here.region


@contextmanager
def entered(region: Region) -> Iterator[Region]:
    """Be in a region."""
    before, _here.region = _here.region, region
    try:
        yield region
    finally:
        _here.region = before


def alone() -> bool:
    """Whether this rank does something that the others do not: no collective may be called."""
    return _alone > 0


@contextmanager
def on_one_rank() -> Iterator[None]:
    """Do something that the other ranks do not do."""
    global _alone
    _alone += 1
    try:
        yield
    finally:
        _alone -= 1
