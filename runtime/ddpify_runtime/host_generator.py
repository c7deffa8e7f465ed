"""The state of torch's generator on the host, in the memory where torch keeps it: looked at around each batch.

`get_state()` makes a tensor of 5 kB, for twenty times the instructions. Where the memory is, and that all draws move
it and nothing else does, is tried once on a generator of ours; a torch that keeps it otherwise is asked for tensors.
"""

from __future__ import annotations

import ctypes
import struct
from functools import cache
from typing import Any, TypeAlias

import torch
from torch import Generator, Tensor

from .torch_internals import address_of

State: TypeAlias = "bytes | Tensor"  # a tensor where the memory was not found

# What torch keeps (ATen/core/MT19937RNGEngine.h, CPUGeneratorImpl.h): the seed, how many words are left, whether it is
# seeded, the next word; 624 words; a second normal number in hand, as float and as double, each with its flag.
_HEAD = struct.Struct("<Qi?3xI")
_WORDS = struct.Struct("<624I")
_SIZE = 2544
_SEED = 0x1234_5678_9ABC
_WITHIN = 256  # bytes from the beginning of the object, in which the head is looked for


def read() -> State:
    """The state of the generator that all of torch draws from on the host."""
    memory = _memory()
    if memory is None:
        return torch.default_generator.get_state()
    found: bytes = memory.raw
    return found


def write(state: State) -> None:
    """Go on from a state."""
    if isinstance(state, Tensor):
        torch.default_generator.set_state(state)
    else:
        _memory().raw = state


def same(one: State, other: State) -> bool:
    """Whether two states are the same."""
    if isinstance(one, Tensor) and isinstance(other, Tensor):
        return torch.equal(one, other)
    return one == other


def as_tensor(state: State) -> Tensor:
    """A state as torch's `get_state()` gives it."""
    if isinstance(state, Tensor):
        return state
    generator = Generator("cpu")
    memory = _memory_of(generator)
    memory.raw = state
    return generator.get_state()


def of_tensor(state: Tensor) -> State:
    """The same back."""
    if _memory() is None:
        return state
    generator = Generator("cpu")
    generator.set_state(state)
    found: bytes = _memory_of(generator).raw
    return found


@cache
def _memory() -> Any:
    return None if _place() is None else _memory_of(torch.default_generator)


def _memory_of(generator: Generator) -> Any:
    place = _place()
    assert place is not None
    return (ctypes.c_char * _SIZE).from_address(address_of(generator) + place)


@cache
def _place() -> int | None:
    """Where the state is, from the beginning of a generator; None if it is not as this module knows it."""
    generator = Generator("cpu")
    generator.manual_seed(_SEED)
    start = address_of(generator)
    place = _bytes(start, _WITHIN).find(_SEED.to_bytes(8, "little"))
    if place < 0 or _HEAD.unpack(_bytes(start + place, _HEAD.size)) != (_SEED, 1, True, 0):
        return None
    words = _WORDS.unpack(_bytes(start + place + _HEAD.size, _WORDS.size))
    following = [(1812433253 * (word ^ word >> 30) + place) % 2**32 for place, word in enumerate(words, 1)]
    if words[0] != _SEED % 2**32 or list(words[1:]) != following[:-1]:  # a Mersenne twister that was seeded
        return None
    return place if _is_all(generator, (ctypes.c_char * _SIZE).from_address(start + place)) else None


def _bytes(start: int, size: int) -> bytes:
    return bytes((ctypes.c_char * size).from_address(start))


def _is_all(generator: Generator, memory: Any) -> bool:
    """Whether each draw moves these bytes, and writing them brings the generator back."""
    for size, kind in ((1, torch.float64), (1, torch.float64), (1, torch.float32), (1, torch.float32), (40, None)):
        for draw in (Tensor.normal_, Tensor.uniform_):
            before, state = memory.raw, generator.get_state()
            drawn = draw(torch.empty(size, dtype=kind, device="cpu"), generator=generator)
            if memory.raw == before:
                return False
            after = generator.get_state()
            memory.raw = before
            if not torch.equal(generator.get_state(), state):
                return False
            again = draw(torch.empty(size, dtype=kind, device="cpu"), generator=generator)
            if not torch.equal(again, drawn) or not torch.equal(generator.get_state(), after):
                return False
    return True
