"""Tensors whose values are the numbers of rows: edges, as pairs of nodes; the graph of each node.

The largest of them says how many rows a rank has, as the size of a tensor does: `int(batch.max()) + 1` is that of the
rank's own graphs, and no decision by all samples.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

import torch
from torch import Tensor

_SAME_VALUES = {
    *("__getitem__", "__iter__", "cat", "chunk", "clone", "concat", "contiguous", "detach", "expand", "expand_as"),
    *("flatten", "flip", "index_select", "long", "masked_select", "narrow", "repeat", "reshape", "select", "split"),
    *("squeeze", "stack", "t", "to", "transpose", "unbind", "unsqueeze", "view"),
    *("__add__", "__sub__", "add", "sub"),  # of a number
}
_WRITTEN = {"scatter", "scatter_"}  # all that their last argument does not overwrite is told by it, as in pooling
_SAME_VALUES |= _WRITTEN
_LARGEST = {torch.max, Tensor.max, torch.amax, Tensor.amax}


class RowNumbers:
    """Some tensors of row numbers, and what has the same values."""

    def __init__(self, tensors: Sequence[Tensor]) -> None:
        self._known = {id(tensor): tensor for tensor in tensors}  # held, so that no id is used twice

    def __bool__(self) -> bool:
        return bool(self._known)

    def largest(self, func: Callable[..., Any], args: tuple[Any, ...], kwargs: dict[str, Any]) -> bool:
        """Whether a call gives the largest of some row numbers."""
        return func in _LARGEST and len(args) == 1 and not kwargs and id(args[0]) in self._known

    def is_one(self, value: Any) -> bool:
        """Whether a value is one row number, as `batch[-1]`."""
        return id(value) in self._known and value.numel() == 1

    def follow(self, func: Callable[..., Any], args: tuple[Any, ...], result: Any) -> Any:
        """Notes what a call gives, if it has row numbers of its argument; gives it."""
        name = getattr(func, "__name__", "")
        if not args or name not in _SAME_VALUES:
            return result
        given = args[-1:] if name in _WRITTEN else args[0] if isinstance(args[0], (list, tuple)) else args[:1]
        if any(isinstance(each, Tensor) for each in args[1:]) and name in ("__add__", "__sub__", "add", "sub"):
            return result
        if not given or not all(id(each) in self._known for each in given):
            return result
        made = [result] if isinstance(result, Tensor) else list(result)
        self._known |= {id(each): each for each in made}
        return result if isinstance(result, (Tensor, list, tuple)) else iter(made)
