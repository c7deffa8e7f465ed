"""The modules whose calls are divided over the processes."""

from __future__ import annotations

import weakref
from typing import TYPE_CHECKING

from torch import nn

if TYPE_CHECKING:
    from .routed_call import RoutedCall

calls: weakref.WeakSet[RoutedCall] = weakref.WeakSet()


def routed() -> list[nn.Module]:
    """The modules whose forwards are divided."""
    return [call.module for call in calls]
