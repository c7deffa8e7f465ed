"""Side effects that must happen once: the same call on every rank, the effect on rank 0.

Arguments are evaluated on every rank, since evaluating them may draw random numbers or communicate (HAZARDS I11).
"""

from __future__ import annotations

import os
import sys
from collections.abc import Callable, Iterator
from typing import Any, ParamSpec, TypeVar

import torch
import torch.distributed as dist

from .agreement import random_states
from .agreement.log_settings import elsewhere
from .collectives import broadcast_tensors
from .forward import region, watched
from .lazy.batch import gather_what_it_sees, gather_what_they_hold, wholes
from .process_group import get_rank, get_world_size, is_forked
from .remote import called_back
from .remote.objects import packed, unwrapped
from .remote.values import next_key, travelling
from .sharding.collectives import broadcast_object

P = ParamSpec("P")
R = TypeVar("R")


class Absent:
    """What rank_zero_only returns on the other ranks where they cannot meet: absorbs every use."""

    def __getattr__(self, name: str) -> Absent:
        if name.startswith("__"):
            raise AttributeError(name)
        return self

    def __call__(self, *args: Any, **kwargs: Any) -> Absent:
        return self

    def __getitem__(self, key: Any) -> Absent:
        return self

    def __setitem__(self, key: Any, value: Any) -> None: ...

    def __setattr__(self, name: str, value: Any) -> None: ...

    def __enter__(self) -> Absent:
        return self

    def __exit__(self, *exception: object) -> None: ...

    def __iter__(self) -> Iterator[Any]:
        return iter(())

    def __bool__(self) -> bool:
        return False


def rank_zero_only(function: Callable[P, R]) -> Callable[P, R]:
    """`function` on rank 0 and nothing on the others; no rank goes on before it is done.

    So a file that rank 0 writes is not being read by another rank, and is complete when one reads it (HAZARDS I2, I10).

    A function of the script among its arguments runs on every rank when it is called (`fmin(objective, …)`).

    Args:
        function: any, also a method or a class. It is called with the whole of what each rank holds a part of.

    Returns:
        A function with the same arguments. What it returns is the same on every rank if it is data; anything else is an
        object that lives on rank 0 (remote/objects.py), and what is read from it is the same on every rank.

    Raises:
        Exception: that function raises, on every rank, whatever rank 0 raised.
    """

    absent: Any = Absent()

    def call(*args: P.args, **kwargs: P.kwargs) -> R:
        gather_what_it_sees(function)
        gather_what_they_hold((args, kwargs))  # before rank 0 has other objects there than the others
        args, kwargs = unwrapped(wholes(args)), unwrapped(wholes(kwargs))
        here = get_rank() == 0
        if silently := elsewhere(function):  # functions among its arguments are called later, where something is logged
            _, number = _on_rank_zero(lambda: (None, function(*args, **kwargs)))
            if not here:
                silently(*args, **kwargs)
            return number  # type: ignore[no-any-return]
        if called_back.functions(args, kwargs, objects=False):
            name = getattr(function, "__qualname__", "call")
            return called_back.drive(next_key(name), here, function, args, kwargs, packed)  # type: ignore[no-any-return]
        modules = watched.modules(args, kwargs)

        def called() -> tuple[Any, Any]:
            local, sent = packed(function(*args, **kwargs))
            return local, (sent, watched.states(modules))

        result, sent = _on_rank_zero(called)
        if here:
            return result  # type: ignore[no-any-return]
        watched.follow(modules, sent[1])
        return sent[0]  # type: ignore[no-any-return]

    if _interrupted() or _has_left() or _is_forked():
        return function if get_rank() == 0 else lambda *args, **kwargs: absent
    return function if _single() else call


def rank_zero_first(function: Callable[P, R]) -> Callable[P, R]:
    """`function` on rank 0 first, then on the others: for downloads and caches (I4).

    Random numbers that it draws, such as the first weights of a model, are the same on every rank.

    Args:
        function: what every rank has to do, one before the others.

    Returns:
        A function with the same arguments, which returns on each rank what `function` does there.

    Raises:
        Exception: that function raises, on every rank, whatever rank 0 raised.
    """

    def call(*args: P.args, **kwargs: P.kwargs) -> R:
        args, kwargs = wholes(args), wholes(kwargs)
        gather_what_it_sees(function)
        before = random_states.read()
        result, _ = _on_rank_zero(lambda: (function(*args, **kwargs), None), others_follow=True)
        if get_rank() == 0:
            return result  # type: ignore[no-any-return]
        with random_states.kept():
            random_states.write(before)
            return function(*args, **kwargs)

    return function if _single() or _interrupted() or _is_forked() else call


def rank_zero_value(function: Callable[P, R]) -> Callable[P, R]:
    """`function` on rank 0, its result on every rank: for clocks, file checks and temporary names (I6, I10).

    Args:
        function: what it returns can be pickled.

    Returns:
        A function with the same arguments.

    Raises:
        Exception: that function raises, on every rank, whatever rank 0 raised.
    """

    def call(*args: P.args, **kwargs: P.kwargs) -> R:
        args, kwargs = wholes(args), wholes(kwargs)
        gather_what_it_sees(function)
        _, result = _on_rank_zero(lambda: (None, function(*args, **kwargs)))
        return result  # type: ignore[no-any-return]

    return function if _single() or _interrupted() or _is_forked() else call


def rank_zero_path(path: R, wait: bool = False) -> R | str:
    """The path on rank 0, the null device on the others: `open(rank_zero_path("log.csv"), "w")`.

    Args:
        path: of a file that is written; no collective. It is the same on all ranks for what a sample is made of.
        wait: until all ranks have come here, and have read what the file holds so far.
    """
    if wait:
        barrier()
    return path if get_rank() == 0 or region.loads_alone() else os.devnull


def broadcast(value: R, src: int | None = None, group: Any = None, async_op: bool = False) -> R:
    """Rank 0's value, on every rank; with `src` torch's collective of that name, on tensors and lists of them.

    Args:
        value: anything that can be pickled; with `src` a tensor or several, of one shape and dtype on all ranks.
        src: the rank whose tensors are put into those of all. group, async_op: as in torch.distributed.

    Returns:
        Rank 0's value; with `src` what torch returns: None, or with `async_op` a work to `wait()` for.
    """
    if src is not None:
        return broadcast_tensors(value, src, group, async_op)  # type: ignore[arg-type, no-any-return]
    return rank_zero_value(lambda: value)()


def barrier() -> None:
    """Wait until every rank has come here."""
    rank_zero_only(lambda: None)()


def _single() -> bool:
    """Whether the other ranks do not come here: there are none, or they load samples of their own."""
    return get_world_size() == 1 or region.alone() or region.loads_alone()


def _interrupted() -> bool:
    """Whether this is the handler of a Ctrl-C, which stops the ranks at different places: they cannot meet (P9)."""
    return isinstance(sys.exc_info()[1], KeyboardInterrupt)


def _has_left() -> bool:
    """Whether this was another rank than 0 of a group that it has left: what runs at its exit is rank 0's to do."""
    return get_world_size() == 1 and get_rank() > 0


def _is_forked() -> bool:
    """Whether the script has forked this process: what writes there is rank 0's to do, and no other waits for it."""
    return is_forked() and not region.loads_alone()


def _on_rank_zero(function: Callable[[], tuple[Any, Any]], others_follow: bool = False) -> tuple[Any, Any]:
    """Run a function on rank 0 when all ranks have arrived; the second of its results goes to every rank."""
    kept: Any = None
    sent: list[Any] = [None, None, None]
    dist.all_reduce(torch.zeros(1, device="cpu"))
    if get_rank() == 0:
        before = random_states.key()
        try:
            with region.on_one_rank(others_follow):
                kept, sent[1] = function()
        except Exception as error:  # noqa: BLE001  every rank must leave this call the same way
            sent[0] = travelling(error)
        if random_states.key() != before:  # one process would go on from here
            sent[2] = random_states.read()
    sent = broadcast_object(sent)
    if sent[2] is not None:
        random_states.write(sent[2])
    if sent[0] is not None:
        raise sent[0]
    return kept, sent[1]
