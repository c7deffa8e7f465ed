"""A stream of random numbers for each sample, by its place in the epoch: the same for any number of ranks and workers.

A rank loads a sample as every other rank and any worker would, and nobody draws for samples that it does not load. The
common streams, which order the loaders and serve the loop, stay where they are (HAZARDS S1, S3).
"""

from __future__ import annotations

import ctypes
import random
import sys
from array import array
from collections.abc import Collection, Iterable, Iterator
from contextlib import contextmanager
from typing import Any

import torch

from .. import accelerators

HOST = ("torch", "python", "numpy")
_WORD = 2**32 - 1


def seed(names: Iterable[str], of_pass: int, position: int) -> None:
    """Begin the streams of a sample.

    Args:
        names: of the generators that are meant. of_pass: the seed of this pass over a loader. position: in the pass.
    """
    low, high = of_pass & _WORD, of_pass >> 32 & _WORD
    # torch's generator takes 32 bits: no two positions of a pass lead to the same ones.
    word = _mixed((position * (high | 1) + low) & _WORD)
    for name in names:
        if name == "torch":
            torch.default_generator.manual_seed(word)
        elif name == "python":
            random.seed(word | low << 32 | high << 64 | 1 << 96)
        elif "numpy" in sys.modules:
            sys.modules["numpy"].random.seed([word, high, low, 2])


def _mixed(word: int) -> int:
    """Another number of 32 bits for each (the last steps of MurmurHash3)."""
    word = (word ^ word >> 16) * 0x85EBCA6B & _WORD
    word = (word ^ word >> 13) * 0xC2B2AE35 & _WORD
    return word ^ word >> 16


def marks() -> dict[str, Any]:
    """What the generators' states are compared by; cheap, since it is done for each batch."""
    state = torch.default_generator.get_state()
    found: dict[str, Any] = {
        "torch": ctypes.string_at(state.data_ptr(), state.numel()),
        "python": (ctypes.string_at(*_WORDS), _COMMON.gauss_next),
    }
    numpy = sys.modules.get("numpy")
    if numpy is not None:
        bits = numpy.random.get_bit_generator()
        if type(bits) is numpy.random.MT19937:  # get_state() takes a hundred times longer than a look at its 625 words
            found["numpy"] = ctypes.string_at(bits.ctypes.state_address, 2500)
        else:
            found["numpy"] = repr(bits.state)
    device = accelerators.module_in_use()
    if device is not None:
        found["device"] = device.get_rng_state().tolist()
    return found


_COMMON: Any = random.random.__self__  # type: ignore[attr-defined]
# Behind the head of the object: the place in the words, and the words. getstate() makes 625 numbers of them, and takes
# a hundred times as long. (The second of two normal numbers is kept elsewhere.)
_WORDS = id(_COMMON) + object.__basicsize__, 4 * 625


def moved(before: dict[str, Any]) -> set[str]:
    """The generators that were drawn from since `marks()`; "device" stands for that of the accelerator."""
    now = marks()
    return {name for name in now if name not in before or now[name] != before[name]}


@contextmanager
def kept(names: Collection[str] = HOST) -> Iterator[None]:
    """Leave the host's generators as they were, or those of them that are drawn from."""
    before_torch = torch.get_rng_state() if "torch" in names else None
    before_python = random.getstate() if "python" in names else None
    numpy = sys.modules.get("numpy")
    before_numpy = numpy.random.get_state() if numpy is not None and "numpy" in names else None
    try:
        yield
    finally:
        if before_torch is not None:
            torch.set_rng_state(before_torch)
        if before_python is not None:
            random.setstate(before_python)
        if numpy is not None and before_numpy is not None:
            numpy.random.set_state(before_numpy)


def restore(before: dict[str, Any], names: Collection[str]) -> None:
    """Put some generators back to what `marks()` found (but for a normal number that numpy had in hand)."""
    if "torch" in names:
        torch.set_rng_state(torch.frombuffer(bytearray(before["torch"]), dtype=torch.uint8))
    if "python" in names:
        words, second = before["python"]
        place, *state = array("I", words)
        random.setstate((3, (*state, place), second))
    if "numpy" in names and isinstance(before.get("numpy"), bytes):
        numpy = sys.modules["numpy"]
        words = numpy.frombuffer(before["numpy"], dtype=numpy.uint32)
        numpy.random.set_state(("MT19937", words[:624], int(words[624])))
