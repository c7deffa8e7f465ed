"""A rank's own random numbers, for dropout and noise in a divided forward: no two samples have the same (HAZARDS S2).

The generators that all ranks share stay where they are meanwhile, and so go on alike on every rank.
"""

from __future__ import annotations

import hashlib
import threading
from collections.abc import Iterator
from contextlib import contextmanager
from operator import itemgetter
from typing import Any

import torch
import torch.distributed as dist
from torch import Tensor

from .. import accelerators, host_generator

_States = dict[torch.device, Any]  # of the generators of the host, and of an accelerator

_own: _States = {}


_HOST = torch.device("cpu")


class _Common(threading.local):
    common: _States | None = None  # what all ranks share, while this thread draws its own


_here = _Common()
drawing = 0  # threads that draw the rank's own numbers
_counting = threading.Lock()


class _Replaced:
    """Functions of torch's that have others in their place, as long as somebody draws the rank's own numbers."""

    def __init__(self, replacements: dict[str, Any]) -> None:
        self._theirs = {name: vars(torch)[name] for name in replacements}
        self._ours = replacements
        self._names = itemgetter(*replacements)

    def replace(self) -> None:
        self._put(self._theirs, self._ours)

    def put_back(self) -> None:
        self._put(self._ours, self._theirs)

    def _put(self, before: dict[str, Any], after: dict[str, Any]) -> None:
        """What somebody else has put there stays."""
        there = vars(torch)
        if self._names(there) == (*before.values(),):
            there.update(after)
        else:
            there.update({name: after[name] for name in after if there[name] is before[name]})


_replaced: list[_Replaced] = []


def active() -> bool:
    """Whether this thread draws the rank's own numbers."""
    return _here.common is not None


@contextmanager
def own_random_numbers(device: torch.device) -> Iterator[None]:
    """Draw from this rank's own stream, on the host and on an accelerator; it goes on where it ended the last time.

    It begins at a place that the common generators and the rank decide: the same run gives the same numbers again.
    """
    begin(device)
    try:
        yield
    finally:
        end()


def begin(device: torch.device) -> None:
    """Enter `own_random_numbers`."""
    global drawing
    common: _States = {_HOST: host_generator.read()}
    if device.type != "cpu" and accelerators.module_of(device.type) is not None:
        common[device] = _read(device)
    for place in common:
        own = _own.get(place)
        _write(place, _begun(place, common[_HOST]) if own is None else own)
    with _counting:
        if not drawing:
            for each in _replaced:
                each.replace()
        drawing += 1
    _here.common = common


def end() -> None:
    """Leave it."""
    global drawing
    common, _here.common = _here.common, None
    with _counting:
        drawing -= 1
        if not drawing:
            for each in _replaced:
                each.put_back()
    for place, state in (common or {}).items():
        _own[place] = _read(place)
        _write(place, state)


def replace_while_drawing(functions: dict[str, Any]) -> None:
    """Put functions of ours, at least two, in the place of torch's, by name, while a rank draws its own numbers."""
    _replaced.append(_Replaced(functions))


@contextmanager
def common_random_numbers() -> Iterator[None]:
    """Within own_random_numbers, draw what is the same on every rank."""
    common = _here.common
    assert common is not None
    own = {place: _read(place) for place in common}
    for place, state in common.items():
        _write(place, state)
    try:
        yield
    finally:
        common.update({place: _read(place) for place in common})
        for place, state in own.items():
            _write(place, state)


def own_states() -> dict[str, Tensor]:
    """Where this rank's streams are, by device; for a checkpoint."""
    return {place.type: host_generator.as_tensor(state) for place, state in _own.items()}


def put_back(states: dict[str, Tensor]) -> None:
    """Go on with this rank's streams there; those that are not given begin anew."""
    devices = {place.type: place for place in _own}
    _own.clear()
    for kind, state in states.items():
        place = _HOST if kind == "cpu" else devices.get(kind) or torch.empty(0, device=kind).device
        _own[place] = host_generator.of_tensor(state) if place is _HOST else state


def _read(place: torch.device) -> Any:
    return host_generator.read() if place is _HOST else accelerators.module_of(place.type).get_rng_state(place)


def _write(place: torch.device, state: Any) -> None:
    if place is _HOST:
        host_generator.write(state)
    else:
        accelerators.module_of(place.type).set_rng_state(state, place)


def _begun(place: torch.device, common: host_generator.State) -> Any:
    words = bytes(host_generator.as_tensor(common).tolist())
    digest = hashlib.sha256(words + bytes(f"{place.type} {dist.get_rank()}", "ascii")).digest()
    state = torch.Generator(device=place).manual_seed(int.from_bytes(digest[:7], "big")).get_state()
    return host_generator.of_tensor(state) if place is _HOST else state
