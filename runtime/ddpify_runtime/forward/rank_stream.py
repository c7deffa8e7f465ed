"""A rank's own random numbers, for dropout and noise in a divided forward: no two samples have the same (HAZARDS S2).

The generators that all ranks share stay where they are meanwhile, and so go on alike on every rank.
"""

from __future__ import annotations

import hashlib
import threading
from collections.abc import Iterator
from contextlib import contextmanager

import torch
import torch.distributed as dist
from torch import Tensor

from .. import accelerators

_States = dict[torch.device, Tensor]  # of the generators of the host, and of an accelerator

_own: _States = {}


_HOST = torch.device("cpu")


class _Common(threading.local):
    common: _States | None = None  # what all ranks share, while this thread draws its own


_here = _Common()


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
    common = {_HOST: _read(_HOST)}
    if device != _HOST and accelerators.module_of(device.type) is not None:
        common[device] = _read(device)
    for place in common:
        own = _own.get(place)
        _write(place, _begun(place, common[_HOST]) if own is None else own)
    _here.common = common


def end() -> None:
    """Leave it."""
    common, _here.common = _here.common, None
    for place, state in (common or {}).items():
        _own[place] = _read(place)
        _write(place, state)


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
    return {place.type: state for place, state in _own.items()}


def put_back(states: dict[str, Tensor]) -> None:
    """Go on with this rank's streams there; those that are not given begin anew."""
    devices = {place.type: place for place in _own}
    _own.clear()
    _own.update({devices.get(kind) or torch.empty(0, device=kind).device: state for kind, state in states.items()})


def _read(place: torch.device) -> Tensor:
    if place is _HOST:
        return torch.default_generator.get_state()
    state: Tensor = accelerators.module_of(place.type).get_rng_state(place)
    return state


def _write(place: torch.device, state: Tensor) -> None:
    if place is _HOST:
        torch.default_generator.set_state(state)
    else:
        accelerators.module_of(place.type).set_rng_state(state, place)


def _begun(place: torch.device, common: Tensor) -> Tensor:
    digest = hashlib.sha256(bytes(common.tolist()) + bytes(f"{place.type} {dist.get_rank()}", "ascii")).digest()
    return torch.Generator(device=place).manual_seed(int.from_bytes(digest[:7], "big")).get_state()
