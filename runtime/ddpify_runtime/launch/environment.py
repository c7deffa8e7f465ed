"""What the launcher says: which process this is, of how many, and where they meet. Imports no torch."""

from __future__ import annotations

import os
import sys
from collections.abc import Mapping, MutableMapping

from .launchers import LAUNCHERS, TORCHRUN, Launcher
from .launchers import Environment as Environment


def read(environ: Mapping[str, str] = os.environ) -> Environment:
    """The place that the innermost launcher gives to this process (launchers.py); one process when there is none.

    Raises:
        RuntimeError: what a launcher says is no place, or RANK and WORLD_SIZE contradict another launcher.
    """
    return _found(environ)[1]


def join(environ: MutableMapping[str, str] = os.environ) -> Environment:
    """Read this process's place, and write it down as torch's `env://` reads it: RANK, WORLD_SIZE, MASTER_ADDR, ….

    Every process of the run has to call this: some launchers let them find each other only together. A process that
    trains alone keeps its environment. Ends with one line and status 2 where the processes cannot find each other.
    """
    try:
        launcher, place = _found(environ)
        if launcher is None or place.world_size == 1:
            return place
        if "MASTER_ADDR" not in environ or "MASTER_PORT" not in environ:
            host, port = launcher.meet(environ, place.rank)
            environ.setdefault("MASTER_ADDR", host)
            environ.setdefault("MASTER_PORT", str(port))
    except RuntimeError as error:
        print(f"ddpify: {error}", file=sys.stderr, flush=True)
        raise SystemExit(2) from None
    environ.update(RANK=str(place.rank), WORLD_SIZE=str(place.world_size), LOCAL_RANK=str(place.local_rank))
    return place


def _found(environ: Mapping[str, str]) -> tuple[Launcher | None, Environment]:
    if "RANK" in environ:
        environ = {"LOCAL_RANK": environ["RANK"], **environ}  # for those who set torch's variables by hand
    places = [(launcher, place) for launcher in LAUNCHERS if (place := launcher.place(environ)) is not None]
    several = [(launcher, place) for launcher, place in places if place.world_size > 1]
    if places and places[0][0] is TORCHRUN:
        if "TORCHELASTIC_RUN_ID" not in environ:
            _require_agreement(places[0], several)
        return places[0]
    return several[0] if several else (None, Environment())


def _require_agreement(torch: tuple[Launcher, Environment], others: list[tuple[Launcher, Environment]]) -> None:
    """RANK that torchrun has not set may be the rest of another run, exported long ago: one world would be many.

    A process of a launcher may have started several of its own. It has not started fewer.
    """
    words, place = torch
    for launcher, other in others:
        same = (place.rank, place.world_size) == (other.rank, other.world_size)
        if not same and place.world_size <= other.world_size:
            raise RuntimeError(
                f"{words.rank}={place.rank} of {words.world_size}={place.world_size}, but {launcher.name} says "
                f"{launcher.rank}={other.rank} of {launcher.world_size}={other.world_size}: "
                f"unset {words.rank}, {words.world_size} and {words.local_rank}"
            )


def draws_original(environ: Mapping[str, str] = os.environ) -> bool:
    """Whether every rank draws the random numbers of one process, at its price: DDPIFY_RANDOM=original.

    `ddpify verify` asks for it, so that every step can be held against the original. Without it a rank draws for its
    own samples only, while they are loaded and in a divided forward (docs/contract.md).

    Raises:
        RuntimeError: DDPIFY_RANDOM has another value.
    """
    value = environ.get("DDPIFY_RANDOM", "")
    if value not in ("", "original"):
        raise RuntimeError(f"DDPIFY_RANDOM={value!r} is not known: leave it out, or set it to 'original'")
    return value == "original"
