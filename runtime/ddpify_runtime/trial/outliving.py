"""What a forward leaves of its samples outside of itself: in a list of the script's own, a class, a closure.

Whoever reads it there takes it for that of the whole batch, and a rank would leave its own rows. What a forward keeps
in its module is compared with what it keeps there of the whole batch.
"""

from __future__ import annotations

import gc
import weakref
from collections.abc import Iterable
from functools import lru_cache
from typing import Any

from torch import Tensor

_CACHE = type(lru_cache(lambda: None))

Noted = list[weakref.ref[Tensor]]


def noted(tensors: Iterable[Tensor]) -> Noted:
    """Remember some tensors without keeping them."""
    return [weakref.ref(tensor) for tensor in tensors]


def is_left(tensors: Noted) -> bool:
    """Whether any is still there when those who made them are not, but for what only lru_cache keeps for a tensor: it
    gives that back for the very same one alone. Such caches are empty then, as calls with other tensors leave them."""
    if all(living() is None for living in tensors):
        return False
    gc.collect()  # a copy of a module may hold itself
    if all(living() is None for living in tensors):
        return False
    for cache in gc.get_objects():
        if isinstance(cache, _CACHE) and _is_asked_by_tensors(cache):
            cache.cache_clear()
    return any(living() is not None for living in tensors)


def _is_asked_by_tensors(cache: Any) -> bool:
    """Whether a cache has entries, each for a tensor among others; its keys are those of the dictionary it holds."""
    held = (each for each in gc.get_referents(cache) if isinstance(each, dict))
    keys = [key for each in held for key in each if isinstance(key, tuple)]
    return bool(keys) and all(any(isinstance(part, Tensor) for part in key) for key in keys)
