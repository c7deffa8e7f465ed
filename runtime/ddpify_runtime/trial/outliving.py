"""What a forward leaves of its samples outside of itself: in a list of the script's own, a class, a closure.

Whoever reads it there takes it for that of the whole batch, and a rank would leave its own rows. What a forward keeps
in its module is compared with what it keeps there of the whole batch.
"""

from __future__ import annotations

import gc
import weakref
from collections.abc import Iterable

from torch import Tensor

Noted = list[weakref.ref[Tensor]]


def noted(tensors: Iterable[Tensor]) -> Noted:
    """Remember some tensors without keeping them."""
    return [weakref.ref(tensor) for tensor in tensors]


def is_left(tensors: Noted) -> bool:
    """Whether any is still there when those who made them are not."""
    if all(living() is None for living in tensors):
        return False
    gc.collect()  # a copy of a module may hold itself
    return any(living() is not None for living in tensors)
