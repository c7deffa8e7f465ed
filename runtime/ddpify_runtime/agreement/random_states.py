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


def read() -> dict[str, Any]:
    """The states of all generators, by name."""
    states: dict[str, Any] = {"torch": torch.get_rng_state(), "python": random.getstate()}
    numpy = sys.modules.get("numpy")
    if numpy is not None:
        states["numpy"] = numpy.random.get_state()
    if torch.cuda.is_initialized():
        states["cuda"] = torch.cuda.get_rng_state()
    if (seed := xla_seed()) is not None:
        states["xla"] = seed
    return states


def write(states: dict[str, Any]) -> None:
    """Put states back."""
    torch.set_rng_state(states["torch"])
    random.setstate(states["python"])
    numpy = sys.modules.get("numpy")
    if numpy is not None and "numpy" in states:
        numpy.random.set_state(states["numpy"])
    if "cuda" in states:
        torch.cuda.set_rng_state(states["cuda"])
    if "xla" in states and states["xla"] != xla_seed():  # setting it also changes what follows the next sync
        sys.modules["torch_xla"].manual_seed(states["xla"])


def xla_seed() -> int | None:
    """The state of the XLA device's generator; None where there is no such device."""
    torch_xla = sys.modules.get("torch_xla")
    if torch_xla is None or not torch_xla._XLAC._xla_runtime_is_initialized():
        return None
    return int(torch_xla.core.xla_model.get_rng_state())


def key() -> tuple[Any, ...]:
    """The states of the host's generators, as something that compares by value."""
    states = read()
    drawn = states.get("numpy")
    return (
        ctypes.string_at(states["torch"].data_ptr(), states["torch"].numel()),  # without numpy
        states["python"],
        None if drawn is None else (drawn[1].tobytes(), drawn[2:]),
    )


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
