"""What a forward leaves of its samples outside of itself: in a list of the script's own, a class, a closure.

Whoever reads it there takes it for that of the whole batch, and a rank would leave its own rows. What a forward keeps
in its module is compared with what it keeps there of the whole batch.
"""

from __future__ import annotations

import gc
import weakref
from collections.abc import Iterable
from functools import lru_cache

import torch
from torch import Tensor

from ..torch_internals import tree_leaves

_CACHE = type(lru_cache(lambda: None))

Noted = list[weakref.ref[Tensor]]


def noted(tensors: Iterable[Tensor]) -> Noted:
    """Remember some tensors without keeping them."""
    return [weakref.ref(tensor) for tensor in tensors]


def is_left(tensors: Noted) -> bool:
    """Whether any is still there when those who made them are not, but for what lru_cache keeps for a tensor: it gives
    that back for the very same one alone."""
    if all(living() is None for living in tensors):
        return False
    gc.collect()  # a copy of a module may hold itself
    left = {_place(tensor) for living in tensors if (tensor := living()) is not None}
    return bool(left) and not left <= _kept_for_tensors()


def _place(tensor: Tensor) -> int:
    """Where a tensor lies; a view lies where what it is a view of does, and keeps that."""
    return tensor.untyped_storage().data_ptr() if tensor.layout == torch.strided else id(tensor)


def _kept_for_tensors() -> set[int]:
    """The places of what caches of functools.lru_cache hold that are asked by tensors, and of these."""
    found: set[int] = set()
    for cache in gc.get_objects():
        if isinstance(cache, _CACHE):
            held = [each for each in gc.get_referents(cache) if isinstance(each, Tensor | tuple)]
            by_tensors = any(isinstance(part, Tensor) for each in held if isinstance(each, tuple) for part in each)
            found |= {_place(each) for each in tree_leaves(held) if isinstance(each, Tensor)} if by_tensors else set()
    return found
