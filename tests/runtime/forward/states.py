"""What a model of another file calls."""

from __future__ import annotations

from torch import Tensor


def kept_state(x: Tensor) -> Tensor:
    return of_all(x)


def of_all(x: Tensor) -> Tensor:
    return x
