"""What a forward does with numbers of its samples that a trial of a few batches does not show.

A decision such as `if x.max() > 1:`, or by a number of one sample that then holds for all, may turn out otherwise for a
part of the batch, now or in a later step. So may a value such as `x / x.norm().clamp(min=1)`. A forward that reads
numbers of samples into Python, or uses one of the whole batch for its samples, is not divided. Where only a size comes
from values, the ranks compare the sizes of what they return.
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

from .. import torch_internals
from ..forward.callers import caller
from ..forward.decisions import decides
from ..forward.losses import reduction
from ..forward.row_numbers import RowNumbers

_READS = {
    *(torch.allclose, torch.equal, Tensor.allclose, Tensor.equal),
    *(torch.arange, torch.empty, torch.eye, torch.full, torch.linspace, torch.ones, torch.zeros),  # sizes
    *(torch.rand, torch.randint, torch.randn, torch.randperm),
    *(Tensor.new_empty, Tensor.new_full, Tensor.new_ones, Tensor.new_zeros),
    *(torch.is_nonzero, Tensor.is_nonzero),
    Tensor.__array__,
    Tensor.__bool__,
    Tensor.__contains__,
    Tensor.__float__,
    Tensor.__index__,
    Tensor.__int__,
    Tensor.item,
    Tensor.numpy,
    Tensor.tolist,
}
_SELECTS = {"__getitem__", "__iter__", "select", "take", "unbind"}
_SIZED_BY_VALUES = {
    "argwhere",
    "bincount",
    "masked_select",
    "nonzero",
    "one_hot",
    "repeat_interleave",
}
_MERGED = {"unique", "unique_consecutive"}  # which are sized by values, too


class ReadsSamples(RuntimeError):
    """A forward reads numbers of its samples, or uses one of the whole batch."""


class Reads(TorchFunctionMode):
    """Raises ReadsSamples where values of samples are read, or a number of several meets the samples again.

    Args:
        samples: the tensors that hold the samples. counters: those of one number that the forward changes.
        row_numbers: the samples that are numbers of rows.

    Attributes:
        sizes: whether sizes may depend on the values of samples. merges: whether equal values of samples become one.
        rounds: whether float32 is made of samples in float64, as norms and rotations of language models do.
    """

    def __init__(
        self, samples: Sequence[Tensor], counters: Sequence[Tensor] = (), row_numbers: Sequence[Tensor] = ()
    ) -> None:
        super().__init__()
        self.row_numbers = RowNumbers(row_numbers)
        self.counters = {id(tensor): tensor for tensor in counters}
        self.samples = {id(tensor): tensor for tensor in samples}  # held, so that no id is used twice
        self.numbers: dict[int, Tensor] = {}  # of all samples
        self.counts: dict[int, Tensor] = {}  # sums over them: of the whole, but a decision compares them with a size
        self.sizes = self.merges = self.rounds = False

    def __torch_function__(
        self, func: Callable[..., Any], types: Sequence[type], args: tuple[Any, ...] = (), kwargs: Any = None
    ) -> Any:
        kwargs = kwargs or {}
        if self.row_numbers:
            with torch.DisableTorchFunction():
                largest = self.row_numbers.largest(func, args, kwargs)
            if largest:
                return func(*args)
            return self.row_numbers.follow(func, args, self._followed(func, args, kwargs))
        return self._followed(func, args, kwargs)

    def _followed(self, func: Callable[..., Any], args: tuple[Any, ...], kwargs: dict[str, Any]) -> Any:
        with torch.DisableTorchFunction():  # the other modes would look at what is only looked at here
            given = _tensors((_valued(func, args), kwargs))
            number = any(id(tensor) in self.numbers for tensor in given)
            sampled = any(id(tensor) in self.samples for tensor in given)
            decided = decides(func, args, kwargs)
            for read in given if func in _READS and not decided else _bounds(func, args):
                if self.row_numbers and self.row_numbers.is_one(read):
                    continue
                if id(read) in self.samples or id(read) in self.numbers or id(read) in self.counts:
                    refuse("reads numbers of its samples", counts=not read.is_floating_point())
            if func in _READS and any(id(tensor) in self.counters for tensor in given):
                refuse(DECIDES_BY_COUNTER)
            if sampled and self._cuts(func, args, kwargs):
                refuse("cuts its batch at a number of samples")
            if number and sampled:
                refuse("uses a number of the whole batch for its samples")
            self.merges |= sampled and _name(func) in _MERGED
            self.sizes |= self.merges or (sampled and _sized_by_values(func, args))
        result = func(*args, **kwargs)
        with torch.DisableTorchFunction():
            if sampled and any(tensor.dtype == torch.float64 for tensor in given):
                self.rounds |= any(tensor.dtype == torch.float32 for tensor in _tensors(result))
            if decided:  # by the whole batch
                return result
            if not (number or sampled) or reduction(func, args, kwargs):  # such a loss is that of the whole batch
                if any(id(tensor) in self.counts for tensor in given) or (sampled and _name(func) == "sum"):
                    self.counts |= {id(tensor): tensor for tensor in _tensors(result) if not tensor.requires_grad}
                if not sampled and any(id(tensor) in self.counters for tensor in given):
                    self.counters |= {id(tensor): tensor for tensor in _tensors(result)}
                return result
            rows = list(result) if func is Tensor.__iter__ else None
            several = any(tensor.dim() for tensor in given)
            for tensor in _tensors((rows or result, args[0] if _in_place(func) else kwargs.get("out"))):
                of_all = number or (several and not tensor.dim() and _name(func) not in _SELECTS)
                (self.numbers if of_all else self.samples)[id(tensor)] = tensor
        return result if rows is None else iter(rows)

    def _cuts(self, func: Callable[..., Any], args: tuple[Any, ...], kwargs: dict[str, Any]) -> bool:
        """Whether a batch is cut where the few samples of a trial end before, as in virtual batches of 128 samples."""
        tensor = args[0] if args else None
        few = next(iter(self.samples.values()))  # the first that was given
        if not isinstance(tensor, Tensor) or not tensor.dim() or id(tensor) not in self.samples or not few.dim():
            return False
        size = tensor.size(0)
        if size % max(1, few.size(0)):
            return False
        bound = _bound_of_cut(func, args, kwargs, tensor.dim())
        return isinstance(bound, int) and bound > size

    def made(self) -> list[Tensor]:
        """All that was computed from samples, and these."""
        return [*self.samples.values(), *self.numbers.values()]

    def comes_from_samples(self, value: Any) -> bool:
        """Whether a value was computed from samples, other than by a loss of the whole batch."""
        return id(value) in self.samples or id(value) in self.numbers

    def require_none(self, outputs: Any) -> None:
        """Raises ReadsSamples if a number of all samples that is no loss is among some outputs."""
        if any(id(tensor) in self.numbers for tensor in _tensors(outputs)):
            raise ReadsSamples("it returns a number of the whole batch that is no loss")


DECIDES_BY_COUNTER = "decides by a number that changes from call to call"


def refuse(what: str, counts: bool = False) -> None:
    """Raises ReadsSamples with the line that calls the caller, unless what it does there is harmless."""
    frame = caller()
    file, line = frame.f_code.co_filename, frame.f_lineno
    of_torch = frame.f_globals.get("__name__", "").startswith("torch.")  # checks its arguments, as distributions do
    if not of_torch and not _is_harmless(file, line, counts):
        raise ReadsSamples(f"{Path(file).name}:{line} {what}")


def _is_harmless(file: str, line: int, counts: bool) -> bool:
    """Whether what is read on a line decides nothing for other samples.

    `assert` and `if …: raise` can only raise, which stops the run. `pack_padded_sequence` takes a length for each;
    counts: whether lengths may be what is read.
    """
    try:
        tree = ast.parse("".join(linecache.getlines(file)))
    except SyntaxError:
        return False
    harmless = [_harmless_part(node, counts) for node in ast.walk(tree)]
    return any(part is not None and part.lineno <= line <= (part.end_lineno or line) for part in harmless)


def _harmless_part(node: ast.AST, counts: bool) -> ast.expr | None:
    if isinstance(node, ast.Assert):
        return node.test
    if isinstance(node, ast.If) and all(isinstance(part, ast.Raise) for part in node.body + node.orelse):
        return node.test
    if counts and isinstance(node, ast.Call) and ast.unparse(node.func).split(".")[-1] == "pack_padded_sequence":
        return node
    return None


def _tensors(values: Any) -> list[Tensor]:
    """The tensors in some values; of plain tuples, lists and dictionaries without pytree, which takes longer."""
    kind = type(values)
    if isinstance(values, Tensor):
        return [values]
    if kind in (tuple, list):
        return [tensor for each in values if type(each) not in _ATOMIC for tensor in _tensors(each)]
    if kind is dict:
        return _tensors([*values.values()])
    return [leaf for leaf in torch_internals.tree_leaves(values) if isinstance(leaf, Tensor)]


_ATOMIC = (bool, int, float, str, type(None), torch.dtype)


def _indices(func: Callable[..., Any], args: tuple[Any, ...]) -> list[Any]:
    if func not in (Tensor.__getitem__, Tensor.__setitem__):
        return []
    return list(args[1]) if isinstance(args[1], tuple) else [args[1]]


def _bounds(func: Callable[..., Any], args: tuple[Any, ...]) -> list[Any]:
    slices = [index for index in _indices(func, args) if isinstance(index, slice)]
    return [bound for index in slices for bound in (index.start, index.stop, index.step)]


def _bound_of_cut(func: Callable[..., Any], args: tuple[Any, ...], kwargs: dict[str, Any], dims: int) -> Any:
    """Where a tensor's first dimension is cut; no number if it is not, or as its own size asks for."""
    name = _name(func)
    if name in ("chunk", "split"):
        names = ("chunks", "split_size", "split_size_or_sections")
        parts = args[1] if len(args) > 1 else next(kwargs[key] for key in names if key in kwargs)
        if (args[2] if len(args) > 2 else kwargs.get("dim", 0)) % dims:
            return None
        return sys.maxsize if name == "chunk" and parts == 1 else parts if name == "split" else None
    first = next(iter(_indices(func, args)), None)
    return first.stop if isinstance(first, slice) and first.stop != sys.maxsize else None


def _sized_by_values(func: Callable[..., Any], args: tuple[Any, ...]) -> bool:
    masks = [index for index in _indices(func, args) if isinstance(index, Tensor) and index.dtype == torch.bool]
    return bool(masks) or _name(func) in _SIZED_BY_VALUES


def _valued(func: Callable[..., Any], args: tuple[Any, ...]) -> tuple[Any, ...]:
    """The arguments whose values matter; of others only the form does, as of y in `x.type_as(y)`."""
    name = _name(func)
    if name == "to" or name.endswith("_as"):
        return args[:1]
    return args[1:] if name.startswith("new_") or name in ("full_like", "ones_like", "zeros_like") else args


def _in_place(func: Callable[..., Any]) -> bool:
    name = _name(func)
    return name == "__setitem__" or (name.endswith("_") and not name.endswith("__"))


def _name(func: Callable[..., Any]) -> str:
    return getattr(func, "__name__", "")
