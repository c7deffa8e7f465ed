"""Hooks that a library sets on rank 0's module alone, to log gradients: a watched module runs whole, on every rank."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any
from weakref import WeakKeyDictionary

from torch import nn
from torch.utils.hooks import RemovableHandle

from . import division

_marks: WeakKeyDictionary[nn.Module, RemovableHandle] = WeakKeyDictionary()


def modules(args: tuple[Any, ...], kwargs: dict[str, Any]) -> list[nn.Module]:
    """The modules among the arguments of a call."""
    return [value for value in (*args, *kwargs.values()) if isinstance(value, nn.Module)]


def states(found: Sequence[nn.Module]) -> list[bool]:
    """Whether each is watched, on this rank."""
    return [bool(division.watched(module)) for module in found]


def follow(found: Sequence[nn.Module], watched: Sequence[bool]) -> None:
    """Take the modules for watched if they are so on rank 0, which has just done something to them."""
    for module, there in zip(found, watched, strict=True):
        if there and not division.watched(module):
            _marks[module] = module.register_forward_hook(_nothing)
        elif not there and module in _marks:
            _marks.pop(module).remove()


def _nothing(*_: Any) -> None: ...
