"""The parts of a module that cannot be divided as a whole: each is tried and divided by itself.

A loss over pairs, a list of images of several sizes, or one number that is read from samples stands in the way of a
model, rarely of its encoder. The model's own forward then runs on every rank, on the whole batch, and the parts that it
calls compute this rank's rows. What they return is joined where the forward needs the whole of it.
"""

from __future__ import annotations

import threading
from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any

import torch
from torch import nn
from torch.nn.parameter import is_lazy

from ..torch_internals import saved_tensor_hooks


class _Active(threading.local):
    module: nn.Module | None = None  # whose forward runs whole, on every rank
    ways: Any = None  # how it computes


_here = _Active()


_SMALLEST = 50  # of so many equal parts: to try one costs a few forwards of it


def of(module: nn.Module) -> list[nn.Module]:
    """What a module consists of, as far as it is made of layers, has a good part of the weights and can be called."""
    least = _size(module) / _SMALLEST
    return [
        part
        for part in module.modules()
        if part is not module
        and type(part).forward is not nn.Module.forward  # a list of modules
        and any(True for _ in part.children())
        and _size(part) >= max(least, 1)
    ]


def _size(module: nn.Module) -> int:
    return sum(parameter.numel() for parameter in module.parameters() if not is_lazy(parameter))


@contextmanager
def within(module: nn.Module) -> Iterator[None]:
    """Compute a module's forward whole on every rank, and the parts of it that can be divided apart."""
    before, _here.module, _here.ways = (_here.module, _here.ways), module, _ways()
    try:
        yield
    finally:
        _here.module, _here.ways = before


def active(module: nn.Module) -> bool:
    """Whether a module's forward is computed in that way, here.

    Not in what it checkpoints, which is computed again in the backward pass, with the same random numbers (M12).
    """
    return _here.module is module and _here.ways == _ways()


def _ways() -> Any:
    return torch.is_grad_enabled(), saved_tensor_hooks()
