"""A stream of random numbers for each sample, by its place in the epoch: the same for any number of ranks and workers.

A rank loads a sample as every other rank and any worker would, and nobody draws for samples that it does not load. The
common streams, which order the loaders and serve the loop, stay where they are (HAZARDS S1, S3).
"""

from __future__ import annotations

import ctypes
import random
import sys
from collections.abc import Callable, Collection, Iterator
from contextlib import contextmanager
from functools import lru_cache
from typing import Any, NamedTuple
from zlib import crc32

import torch

from .. import accelerators, host_generator
from ..host_generator import State

HOST = ("torch", "python", "numpy")
_WORD = 2**32 - 1
_COMMON: Any = random.random.__self__  # type: ignore[attr-defined]
_Seed = Callable[[int], None]


@lru_cache(maxsize=16)
def seeding(names: frozenset[str] | tuple[str, ...], of_pass: int) -> _Seed:
    """What begins the streams of a sample, given its position in the pass.

    Args:
        names: of the generators that are meant. of_pass: the seed of this pass over a loader.
    """
    low, factor = of_pass & _WORD, of_pass >> 32 & _WORD | 1
    torch_seed, python_seed = torch.default_generator.manual_seed, super(random.Random, _COMMON).seed
    with_torch, with_python, with_numpy = ("torch" in names), ("python" in names), ("numpy" in names)
    key = of_pass << 32 | 1 << 96

    def seed(position: int) -> None:
        # torch's generator takes 32 bits: no two positions of a pass lead to one word, nor do two words to one CRC.
        word = crc32((position * factor + low & _WORD).to_bytes(4, "little"))
        if with_torch:
            torch_seed(word)
        if with_python:
            python_seed(word | key)
            _COMMON.gauss_next = None
        if with_numpy and (numpy := sys.modules.get("numpy")) is not None:
            numpy.random.seed(word ^ 0x5BD1E995)  # another one: both are Mersenne twisters

    return seed


# Behind the head of the object: the place in the words, and the words. getstate() makes 625 numbers of them, and takes
# a hundred times as long. (The second of two normal numbers is kept elsewhere.)
_WORDS = (ctypes.c_char * (4 * 625)).from_address(id(_COMMON) + object.__basicsize__)


class Marks(NamedTuple):
    """The states of the generators. numpy, device: None where they are not used.

    second: what numpy's get_state() gives where it has a second normal number in hand and will be put back.
    """

    torch: State
    python: tuple[bytes, float | None]
    numpy: bytes | str | None
    device: list[int] | None
    second: Any = None


def marks(to_restore: Collection[str] = ()) -> Marks:
    """The generators' states, to be compared and put back; cheap, since it is done for each batch.

    Args:
        to_restore: the generators that will be put back.
    """
    device = accelerators.module_in_use()
    words = _numpy_state()
    return Marks(
        host_generator.read(),
        (_WORDS.raw, _COMMON.gauss_next),
        words,
        None if device is None else device.get_rng_state().tolist(),
        _second_number(words) if isinstance(words, bytes) and "numpy" in to_restore else None,
    )


@lru_cache(maxsize=4)
def _bytes(size: int) -> Any:
    return ctypes.c_char * size


_numpy_words: tuple[Any, Any] = None, None  # the bits that numpy draws from, and where they are


def _numpy_state() -> bytes | str | None:
    """The words of numpy's common generator: get_state() takes hundreds of times longer than a look at them."""
    global _numpy_words
    numpy = sys.modules.get("numpy")
    if numpy is None or not hasattr(numpy, "random"):
        return None
    bits = numpy.random.get_bit_generator()
    known, words = _numpy_words
    if bits is not known:
        if type(bits) is not numpy.random.MT19937:
            return repr(bits.state)
        words = _bytes(4 * 625).from_address(bits.ctypes.state_address)
        _numpy_words = bits, words
    found: bytes = words.raw
    return found


_without_second = b""  # words of numpy's common generator when it had no second number in hand


def _second_number(words: bytes) -> Any:
    """numpy's state where it has a second normal number in hand, else None; it is told by get_state() alone."""
    global _without_second
    if words == _without_second:
        return None
    state = sys.modules["numpy"].random.get_state()
    if state[3]:
        return state
    _without_second = words
    return None


def moved(before: Marks, known: Collection[str] = ()) -> set[str]:
    """The generators that were drawn from since `marks()`; "device" stands for that of the accelerator.

    Args:
        before: how they were. known: some that are not asked for.
    """
    found = set()
    if "torch" not in known and not host_generator.same(before.torch, host_generator.read()):
        found.add("torch")
    if "python" not in known and before.python != (_WORDS.raw, _COMMON.gauss_next):
        found.add("python")
    if "numpy" not in known and before.numpy != _numpy_state():
        found.add("numpy")
    device = accelerators.module_in_use()
    if device is not None and device.get_rng_state().tolist() != before.device:
        found.add("device")
    return found.difference(known)


@contextmanager
def kept(names: Collection[str] = HOST) -> Iterator[None]:
    """Leave the host's generators as they were, or those of them that are drawn from."""
    before = marks(names)
    try:
        yield
    finally:
        restore(before, names)


def restore(before: Marks, names: Collection[str]) -> None:
    """Put some generators back to what `marks()` found.

    A second normal number that numpy had in hand is lost, unless `marks()` was told that it will be put back.
    """
    if "torch" in names:
        host_generator.write(before.torch)
    if "python" in names:
        _WORDS.raw, _COMMON.gauss_next = before.python
    if "numpy" in names and isinstance(before.numpy, bytes):
        numpy = sys.modules["numpy"]
        if before.second is not None:
            numpy.random.set_state(before.second)
        else:
            numpy.random.seed(0)  # which forgets a second number
            _numpy_words[1].raw = before.numpy
