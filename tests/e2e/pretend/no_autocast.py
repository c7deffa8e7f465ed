"""Lets a script that asks for automatic mixed precision compute in float32, so that more than rounding can be seen."""

from __future__ import annotations

from typing import Any


def install() -> None:
    """Make every torch.autocast do nothing."""
    import torch

    original = torch.autocast.__init__

    def init(self: torch.autocast, device_type: str, dtype: Any = None, enabled: bool = True, **kwargs: Any) -> None:
        original(self, device_type, dtype, False, **kwargs)

    torch.autocast.__init__ = init  # type: ignore[assignment, method-assign]
