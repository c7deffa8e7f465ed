"""Where the program is: in a divided training forward, at a rank's own samples, or in what one rank does alone."""

from __future__ import annotations

import threading
from collections.abc import Callable, Collection, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, field
from typing import Literal, TypeAlias

from torch import Size, Tensor
from torch.utils.data import get_worker_info

from ..sharding.graphs import AnyDrawn, Layout

Draw: TypeAlias = tuple[str, int, str]  # by what is drawn, of how many dims, and on which line


@dataclass
class Region:
    """A forward that handles `local` of `total` samples.

    mode: "shard" is the real thing; "record" is the whole batch on this rank, noting batch statistics, random draws and
    losses (with the shapes that they were computed from) in `statistics`, `draws` and `losses`; "replay" is this rank's
    samples with what was recorded, and communicates nothing.
    places: where the samples lie in what is drawn; None: the same is drawn for every part. Learnt in "replay", used in
    "shard". several: what is drawn for several rows of each sample, as it seems. drawn: by what, of how many dims.
    over_samples: for each loss in turn whether it is computed from samples. Learnt in "replay", used in "shard".
    decisions: the numbers of the whole batch that decide something, noted in "record". decides: whether there were any.
    extreme: what is drawn for no samples in "record", by an operation that `places` knows to draw such: the lowest
    number it may draw for 0, else the highest; None for any.
    enter: called when a backward pass enters the region.
    counts: for each line that adds integers (and their dims) whether they are of samples. Learnt and used alike.
    layout: where the samples lie, if they are graphs. row_numbers: tensors of the input that number their rows.
    """

    mode: Literal["shard", "record", "replay"]
    total: int
    local: int
    statistics: list[tuple[Tensor, Tensor, int]] = field(default_factory=list)
    draws: list[tuple[Draw, Tensor]] = field(default_factory=list)
    losses: list[tuple[list[Size], Tensor]] = field(default_factory=list)
    places: dict[Draw, AnyDrawn | None] = field(default_factory=dict)
    several: set[Draw] = field(default_factory=set)
    over_samples: list[bool] = field(default_factory=list)
    decisions: list[tuple[Size, Tensor]] = field(default_factory=list)
    counts: dict[tuple[str, int, int], bool] = field(default_factory=dict)
    decides: bool = False
    extreme: float | None = None
    drawn: Collection[tuple[str, int]] = ()
    layout: Layout | None = None
    row_numbers: Sequence[Tensor] = ()
    enter: Callable[[], None] = lambda: None


class _Current(threading.local):
    region: Region | None = None
    loading: bool = False
    loads_alone: bool = False


_here = _Current()
_alone = 0  # of the process: what a rank does alone may start threads
_before_others = 0  # how many of these the other ranks do afterwards


def current() -> Region | None:
    """The region that this thread is in, or None."""
    return _here.region


def enter(region: Region | None) -> Region | None:
    """Be in a region from now on; returns the one before, to enter again."""
    before, _here.region = _here.region, region
    return before


@contextmanager
def within(region: Region) -> Iterator[Region]:
    """Be in a region."""
    before = enter(region)
    try:
        yield region
    finally:
        enter(before)


def alone() -> bool:
    """Whether this rank does something that the others do not: no collective may be called."""
    return _alone > 0


def is_apart() -> bool:
    """Whether the other ranks do not come to this place, or with other samples: a forward here is not divided."""
    return _alone > 0 or _here.loading or _here.loads_alone or get_worker_info() is not None


def require_all_ranks(needed: str) -> None:
    """Before the ranks put something together.

    Raises:
        RuntimeError: the others do not come to this place: it is in what one rank does alone, or in a worker process.
    """
    if _alone:
        raise RuntimeError(f"ddpify: rank 0 alone needs {needed} of which every process holds a part")
    if get_worker_info() is not None:
        raise RuntimeError(
            f"ddpify: a worker process of a loader needs {needed} of which every process holds a part: give its "
            "data set a copy that was read before, such as torch.tensor(x.tolist())"
        )


def alone_for_good() -> bool:
    """The same, and the others will not do it after this rank either."""
    return _alone > _before_others


@contextmanager
def on_one_rank(others_follow: bool = False) -> Iterator[None]:
    """Do something that the other ranks do not do, or do afterwards."""
    global _alone, _before_others
    _alone += 1
    _before_others += others_follow
    try:
        yield
    finally:
        _alone -= 1
        _before_others -= others_follow


@contextmanager
def on_all_ranks() -> Iterator[None]:
    """Within something that one rank does alone: be with the others again."""
    global _alone, _before_others
    before, _alone, _before_others = (_alone, _before_others), 0, 0
    try:
        yield
    finally:
        _alone, _before_others = before


def loading() -> bool:
    """Whether this rank loads its samples: the others load theirs."""
    return _here.loading


def loads_alone() -> bool:
    """Whether this rank loads samples that the others do not, or in a worker process, where they cannot meet."""
    return _here.loads_alone or get_worker_info() is not None


def load_alone(begins: bool) -> bool:
    """Load samples that the others do not load from now on, or no more; returns what was so before, to go back to."""
    before, _here.loads_alone = _here.loads_alone, begins
    return before


def load(begins: bool) -> bool:
    """Load this rank's part of a batch from now on, or no more; returns what was so before, to go back to."""
    before, _here.loading = _here.loading, begins
    return before
