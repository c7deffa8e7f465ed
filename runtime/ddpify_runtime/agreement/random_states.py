"""The global random number generators: those of torch (this process's device too), Python and numpy."""

from __future__ import annotations

import ctypes
import random
import sys
import threading
from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any

import torch
from torch import Tensor

from .. import engines
from ..forward.layer_copies import is_without_parts
from ..loading import streams
from ..torch_internals import CALL


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
    of_torch, device = torch.get_rng_state(), engines.here().random_state()
    return bytes_of(of_torch), *outside_of_torch(), bytes_of(device)


def outside_of_torch() -> tuple[Any, ...]:
    """The states of Python's and numpy's generators, as something that compares by value."""
    if _here.known is not None:
        now = streams.marks()
        return now.python, now.numpy
    return random.getstate(), _of_numpy()


def _of_numpy() -> Any:
    numpy = sys.modules.get("numpy")
    if numpy is None:
        return None
    _, words, *place = numpy.random.get_state()
    return words.tobytes(), place


def bytes_of(state: Any) -> Any:
    """A state of torch's, or of a device, as something that compares by value."""
    return ctypes.string_at(state.data_ptr(), state.numel()) if isinstance(state, Tensor) else state  # without numpy


class _Cached(threading.local):
    known: tuple[dict[str, Any], streams.Marks] | None = None  # states, and how to see that they are the same still


_here = _Cached()


@contextmanager
def read_once() -> Iterator[None]:
    """Within it `kept` reads no states, and `outside_of_torch` only looks at them: numpy's take as long as a layer.

    For what leaves the generators as they are on the whole.
    """
    states = read()
    numpy_has_one_in_hand = bool(states["numpy"][3]) if "numpy" in states else False  # which could go unseen
    before, _here.known = _here.known, None if numpy_has_one_in_hand else (states, streams.marks())
    try:
        yield
    finally:
        _here.known = before


@contextmanager
def kept() -> Iterator[None]:
    """Leave the generators as they were."""
    if _here.known is not None and streams.marks() == _here.known[1]:
        states, marks = _here.known
        try:
            yield
        finally:
            if streams.marks() != marks:
                write(states)
        return
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
    return _holds(value, kinds, depth)


def _holds(value: Any, kinds: tuple[type, ...], depth: int) -> bool:
    kind = type(value)
    if issubclass(kind, kinds):  # isinstance() calls Python for torch.Generator
        return True
    if not depth or issubclass(kind, (Tensor, str, bytes, type)):
        return False
    inside: list[Any] = []
    if hasattr(value, "__dict__"):
        inside += [held for name, held in vars(value).items() if name != CALL]
    if isinstance(value, (list, tuple)) and len(value) <= 100:
        inside += value
    if isinstance(value, dict) and len(value) <= 100:
        inside += value.values()
    return any(_holds(part, kinds, depth - 1) for part in inside if not is_without_parts(part))
