"""The global random number generators: those of torch (this process's device too), Python and numpy."""

from __future__ import annotations

import ctypes
import random
import sys
from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any

import torch
from torch import Tensor

from .. import engines


def read() -> dict[str, Any]:
    """The states of all generators, by name."""
    states: dict[str, Any] = {"torch": torch.get_rng_state(), "python": random.getstate()}
    numpy = sys.modules.get("numpy")
    if numpy is not None:
        states["numpy"] = numpy.random.get_state()
    device = engines.here().random_state()
    if device is not None:
        states["device"] = device
    return states


def write(states: dict[str, Any]) -> None:
    """Put states back."""
    torch.set_rng_state(states["torch"])
    random.setstate(states["python"])
    numpy = sys.modules.get("numpy")
    if numpy is not None and "numpy" in states:
        numpy.random.set_state(states["numpy"])
    if "device" in states:
        engines.here().set_random_state(states["device"])


def key() -> tuple[Any, ...]:
    """The states of all generators, as something that compares by value; that of torch on the host comes first."""
    states = read()
    drawn = states.get("numpy")
    return (
        _value(states["torch"]),
        states["python"],
        None if drawn is None else (drawn[1].tobytes(), drawn[2:]),
        _value(states.get("device")),
    )


def outside_of_torch() -> tuple[Any, ...]:
    """The states of Python's and numpy's generators, as something that compares by value."""
    return key()[1:3]


def _value(state: Any) -> Any:
    return ctypes.string_at(state.data_ptr(), state.numel()) if isinstance(state, Tensor) else state  # without numpy


@contextmanager
def kept() -> Iterator[None]:
    """Leave the generators as they were."""
    states = read()
    try:
        yield
    finally:
        write(states)


def has_generator(value: Any, depth: int = 6) -> bool:
    """Whether an object holds a random number generator of its own."""
    numpy = sys.modules.get("numpy")
    kinds: tuple[type, ...] = (random.Random, torch.Generator)
    if numpy is not None:
        kinds += (numpy.random.Generator, numpy.random.RandomState)
    if isinstance(value, kinds):
        return True
    if not depth or isinstance(value, (Tensor, str, bytes)):
        return False
    inside: list[Any] = list(vars(value).values()) if hasattr(value, "__dict__") and not isinstance(value, type) else []
    if isinstance(value, (list, tuple)) and len(value) <= 100:
        inside += value
    if isinstance(value, dict) and len(value) <= 100:
        inside += value.values()
    return any(has_generator(part, depth - 1) for part in inside)
