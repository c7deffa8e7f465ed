"""Lets a script compute in float64, where rounding in a ReLU does not turn a gradient over."""

from __future__ import annotations


def install() -> None:
    """Make float64 the default of new tensors."""
    import torch

    torch.set_default_dtype(torch.float64)
