"""What the Python code of a forward reads from its samples.

A decision by a number of the whole batch, such as `if x.max() > 1:`, may turn out otherwise for a part of it, now or in
a later step, and no trial of a few batches shows it: such a forward is not divided. What is read of single samples,
such as their lengths, may be used for each of them, or for a size that all have in common: there the ranks compare the
sizes of what they return.
"""

from __future__ import annotations

import ast
import linecache
import sys
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Any

import torch
from torch import Tensor
from torch.overrides import TorchFunctionMode
from torch.utils._pytree import tree_leaves

from .losses import reduces

_COMPARE = {torch.allclose, torch.equal, Tensor.allclose, Tensor.equal}
_READS = {
    *_COMPARE,
    *(torch.arange, torch.empty, torch.linspace, torch.ones, torch.rand, torch.randn, torch.zeros),
    Tensor.__bool__,
    Tensor.__float__,
    Tensor.__index__,
    Tensor.__int__,
    Tensor.item,
    Tensor.numpy,
    Tensor.tolist,
}
_SELECT = {"__getitem__", "__iter__", "select", "take", "unbind"}
_SIZED_BY_VALUES = {
    "_pad_packed_sequence",
    "argwhere",
    "bincount",
    "masked_select",
    "nonzero",
    "one_hot",
    "repeat_interleave",
    "unique",
    "unique_consecutive",
}


class ReadsSamples(RuntimeError):
    """A forward reads a number that depends on several samples."""


class Reads(TorchFunctionMode):
    """Raises ReadsSamples where a value that was reduced from several samples is read.

    Args:
        samples: the tensors that hold the samples.

    Attributes:
        sizes: whether sizes may depend on the values of samples.
    """

    def __init__(self, samples: Sequence[Tensor]) -> None:
        super().__init__()
        self.samples = {id(tensor): tensor for tensor in samples}  # held, so that no id is used twice
        self.reduced: dict[int, Tensor] = {}
        self.sizes = False

    def __torch_function__(
        self, func: Callable[..., Any], types: Sequence[type], args: tuple[Any, ...] = (), kwargs: Any = None
    ) -> Any:
        kwargs = kwargs or {}
        given = _tensors((args, kwargs))
        reduced = any(id(tensor) in self.reduced for tensor in given)
        sampled = any(id(tensor) in self.samples for tensor in given)
        for read in given if func in _READS else _bounds(func, args):
            self._read(read, of_all=id(read) in self.reduced or (func in _COMPARE and sampled))
        self.sizes |= sampled and _sized_by_values(func, args)
        result = func(*args, **kwargs)
        if not (reduced or sampled) or reduces(func, args, kwargs):  # such a loss is that of the whole batch
            return result
        rows = list(result) if func is Tensor.__iter__ else None
        several = any(tensor.dim() for tensor in given)
        for tensor in _tensors((rows or result, args[0] if _in_place(func) else kwargs.get("out"))):
            one = reduced or (several and not tensor.dim() and _name(func) not in _SELECT)
            (self.reduced if one else self.samples)[id(tensor)] = tensor
        return result if rows is None else iter(rows)

    def _read(self, value: Any, of_all: bool) -> None:
        frame = sys._getframe(2)
        if frame.f_globals.get("__name__", "").startswith("torch."):  # checks its arguments, as distributions do
            return
        if of_all and not _is_check(frame.f_code.co_filename, frame.f_lineno):
            place = f"{Path(frame.f_code.co_filename).name}:{frame.f_lineno}"
            raise ReadsSamples(f"{place} reads a number that depends on the whole batch")
        self.sizes |= id(value) in self.samples


def _is_check(file: str, line: int) -> bool:
    """Whether a line can only raise, as `assert` and `if …: raise` do: what raises for a part stops the whole run."""
    try:
        tree = ast.parse("".join(linecache.getlines(file)))
    except SyntaxError:
        return False
    for node in ast.walk(tree):
        if isinstance(node, (ast.Assert, ast.If)) and node.test.lineno <= line <= (node.test.end_lineno or line):
            return isinstance(node, ast.Assert) or all(isinstance(part, ast.Raise) for part in node.body + node.orelse)
    return False


def _tensors(values: Any) -> list[Tensor]:
    return [leaf for leaf in tree_leaves(values) if isinstance(leaf, Tensor)]


def _indices(func: Callable[..., Any], args: tuple[Any, ...]) -> list[Any]:
    if func not in (Tensor.__getitem__, Tensor.__setitem__):
        return []
    return list(args[1]) if isinstance(args[1], tuple) else [args[1]]


def _bounds(func: Callable[..., Any], args: tuple[Any, ...]) -> list[Any]:
    slices = [index for index in _indices(func, args) if isinstance(index, slice)]
    return [bound for index in slices for bound in (index.start, index.stop, index.step)]


def _sized_by_values(func: Callable[..., Any], args: tuple[Any, ...]) -> bool:
    masks = [index for index in _indices(func, args) if isinstance(index, Tensor) and index.dtype == torch.bool]
    return bool(masks) or _name(func) in _SIZED_BY_VALUES


def _in_place(func: Callable[..., Any]) -> bool:
    name = _name(func)
    return name == "__setitem__" or (name.endswith("_") and not name.endswith("__"))


def _name(func: Callable[..., Any]) -> str:
    return getattr(func, "__name__", "")
