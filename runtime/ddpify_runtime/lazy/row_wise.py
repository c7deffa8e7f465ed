"""What an operation gives where it keeps samples apart: computed from the rows that a rank holds."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

import torch
import torch.nn.functional as F
from torch import Tensor

from ..forward import losses
from ..sharding.collectives import Rows, add_over_ranks, count
from .batch import DistributedTensor
from .held_rows import HeldRows, is_view, made_like, on_enter_of, part_of, samples_of, view_of
from .partial import partial
from .row_operations import BINARY, COPIES, FORMS, KINDS, ORDERS_OF_DIMS, OVER_A_DIM, REDUCE_DIMS, SHAPES, SORTED, UNARY

_FIRST = Rows(0)
_SETTINGS = {bool, float, int, str, type(None)}  # of a loss; whether something is a tensor takes longer to ask


def row_wise(func: Callable[..., Any], args: tuple[Any, ...], kwargs: dict[str, Any]) -> Any:
    """The result computed from this rank's samples, or None where that is not known to be the same."""
    first: HeldRows | None
    if args and isinstance(args[0], HeldRows):
        first = args[0]
    else:
        first = next((value for value in (*args, *kwargs.values()) if isinstance(value, HeldRows)), None)
    local = first.local if first is not None else None
    if first is None or local is None:
        return None
    # (F.ctc_loss takes time first, and samples after it.)
    if func in losses.KNOWN and first._place == _FIRST and func is not F.ctc_loss:
        given = losses.reduction(func, args, kwargs)
        if given is not None:
            return _loss(first, local, func, given)
        given = losses.unreduced(func, args, kwargs)
        if given is not None:
            return _of_each(first, local, func, given)
    if not args:
        return None
    alone = args[0] is first and not any(isinstance(value, Tensor) for value in (*args[1:], *kwargs.values()))
    if func in COPIES or (func is Tensor.type and len(args) + len(kwargs) > 1):  # else it asks for the name
        if not alone:
            return None
        copy = func(local, *args[1:], **kwargs)
        if copy is local and is_view(first, func, args, kwargs, copy):  # as torch does where there is nothing to change
            return first
        return view_of(first, func, args, kwargs, copy)
    if func in FORMS and alone and not kwargs.get("requires_grad"):
        return type(first)(func(local, *args[1:], **kwargs), first._total, first._place, ())
    if func in KINDS and alone:
        return func(local, *args[1:], **kwargs)
    if first._place.dim or not first._place.major:
        return None
    if func in REDUCE_DIMS or func in OVER_A_DIM or func in SORTED:
        return _behind_the_batch(first, func, args, kwargs)
    if func in BINARY:
        return _binary(first, func, args, kwargs)
    if func is Tensor.gather or func is torch.gather:
        return _gathered(first, func, args, kwargs)
    if not alone:
        return None
    if func in UNARY:
        return made_like(first, func(local, *args[1:], **kwargs), (first,))
    if func in SHAPES:
        return _reshaped(first, func, args, kwargs)
    if func in ORDERS_OF_DIMS and not kwargs and _stays_first(func, args[1:], first.dim()):
        return view_of(first, func, args, kwargs, func(local, *args[1:]))
    if func is Tensor.__getitem__ and _takes_all_samples(args[1], first.dim()):
        return view_of(first, func, args, kwargs, func(local, args[1]))
    return None


def _reshaped(
    source: HeldRows, func: Callable[..., Any], args: tuple[Any, ...], kwargs: dict[str, Any]
) -> HeldRows | None:
    if any(isinstance(value, torch.dtype) for value in (*args, *kwargs.values())):
        return None
    shape = func(torch.empty(source.shape, device="meta"), *args[1:], **kwargs).shape
    if not shape or shape[0] % source._total or not shape[0]:
        return None
    local = source._rows.reshape(shape[0] // source._total * count(source._total), *shape[1:])
    return view_of(source, func, args, kwargs, local)


def _binary(
    first: HeldRows, func: Callable[..., Any], args: tuple[Any, ...], kwargs: dict[str, Any]
) -> HeldRows | None:
    if kwargs or len(args) != 2:
        return None
    parts = [part_of(value, first) for value in args]
    if any(part is None for part in parts):
        return None
    return made_like(first, func(*parts), [value for value in args if isinstance(value, HeldRows)])


def _loss(first: HeldRows, rows: Tensor, func: Callable[..., Any], given: dict[str, Any]) -> Tensor | None:
    """A loss over the whole batch from the samples of every rank; given: its arguments by name. rows: of the first."""
    classes = func in losses.CLASSES
    local, sources = _parts(first, rows, func, given)
    if local is None:
        return None
    for source in sources:
        source._used = True
    part, divisor, dtype = losses.summands(func, local, classes and _all_count(given, local["target"]))
    whole: Tensor | int
    if isinstance(divisor, Tensor):
        whole = _over_ranks(given, local["target"], divisor)
    else:
        whole = 1 if divisor is None else divisor // count(first._total) * first._total
        if not whole:  # a mean over nothing
            return None
    if isinstance(whole, Tensor) or part.dtype != dtype:  # a sum may be too large for the dtype of the mean
        part, whole = (part / whole).to(dtype), 1
    return partial(part, None, on_enter_of(sources), whole, losses.operation(func, local) if part.requires_grad else "")


def _of_each(first: HeldRows, rows: Tensor, func: Callable[..., Any], given: dict[str, Any]) -> HeldRows | None:
    """A loss for each of this rank's samples, or numbers of them; arguments as for `_loss`."""
    local, sources = _parts(first, rows, func, given)
    return None if local is None else made_like(first, func(**local), sources)


def _parts(
    first: HeldRows, rows: Tensor, func: Callable[..., Any], given: dict[str, Any]
) -> tuple[dict[str, Any] | None, list[HeldRows]]:
    """This rank's part of a loss's arguments, None where that is not seen; and those that are held in rows."""
    classes = func in losses.CLASSES
    local: dict[str, Any] = {}
    sources: list[HeldRows] = []
    for name, value in given.items():
        if type(value) in _SETTINGS:
            local[name] = value
            continue
        if isinstance(value, HeldRows):
            sources.append(value)
        if value is first:
            local[name] = rows
        elif not isinstance(value, Tensor):
            local[name] = value
        elif classes and name == "weight":
            if value.requires_grad:
                return None, sources
            local[name] = value
        elif classes and name == "target" and value.dim() and value.size(0) == first.size(0) and first.dim() > 1:
            local[name] = samples_of(value, first)
        else:
            sizes = value._sizes if isinstance(value, HeldRows) else list(value.shape)
            local[name] = part_of(value, first) if sizes == first._sizes else None
            if local[name] is None:
                return None, sources
    return local, sources


def _gathered(
    first: HeldRows, func: Callable[..., Any], args: tuple[Any, ...], kwargs: dict[str, Any]
) -> HeldRows | None:
    """What an index of each sample takes out of it: `log_probs.gather(-1, labels.unsqueeze(-1))`."""
    if kwargs or len(args) != 3 or args[0] is not first or not isinstance(args[1], int):
        return None
    index = args[2]
    if args[1] % first.dim() == 0 or not isinstance(index, Tensor) or index.size(0) != first.size(0):
        return None
    mine = samples_of(index, first)
    sources = [value for value in (first, index) if isinstance(value, HeldRows)]
    return made_like(first, func(first.local, args[1], mine), sources)


def _all_count(given: dict[str, Any], mine: Tensor) -> bool:
    """Whether every target is known to count in a classification loss; arguments as for `_over_ranks`."""
    target, ignored = given["target"], given["ignore_index"]
    if not isinstance(target, HeldRows) or target._labels is None or given["weight"] is not None:
        return False
    labels, which = target._labels
    return labels.all_count(mine, (ignored, mine.dtype, which))


def _over_ranks(given: dict[str, Any], mine: Tensor, divisor: Tensor) -> Tensor | int:
    """What the mean of a classification loss is divided by; no collective where every rank knows enough of all targets.

    Args: the loss's arguments, this rank's targets, and what their mean would be divided by.
    """
    target = given["target"]
    if not isinstance(target, DistributedTensor):
        return torch.as_tensor(losses.weight_of_targets(given), device=divisor.device)
    if isinstance(target, HeldRows) and target._labels is not None and given["weight"] is None:
        labels, which = target._labels
        return labels.count(divisor, mine.numel(), target.numel(), (given["ignore_index"], mine.dtype, which))
    total = divisor.clone()
    add_over_ranks(total)
    return total


def _behind_the_batch(first: HeldRows, func: Callable[..., Any], args: tuple[Any, ...], kwargs: dict[str, Any]) -> Any:
    """A sum, softmax or the like over other dimensions than that of the samples."""
    place = 2 if func in (Tensor.topk, torch.topk) else 1
    dims = args[place] if len(args) > place else kwargs.get("dim", -1 if func in SORTED else None)
    if args[0] is not first or isinstance(dims, Tensor) or kwargs.get("out") is not None:
        return None
    if not dims:  # over all of them, or over the samples
        return None
    if 0 in _dims(dims if isinstance(dims, (tuple, list)) else (dims,), first.dim()):
        return None
    result = func(first.local, *args[1:], **kwargs)
    if isinstance(result, Tensor):
        return made_like(first, result, (first,))
    return type(result)([made_like(first, each, (first,)) for each in result])  # values and indices


def _dims(dims: Sequence[int], count: int) -> list[int]:
    return [dim % count for dim in dims]


def _stays_first(func: Callable[..., Any], dims: tuple[Any, ...], count: int) -> bool:
    """Whether the first dimension stays the first one where dimensions are given another order."""
    listed = [dim for each in dims for dim in (each if isinstance(each, (tuple, list)) else (each,))]
    if not all(isinstance(each, int) for each in listed):
        return False
    order = _dims(listed, count)
    return order[:1] == [0] if func is Tensor.permute or func is torch.permute else 0 not in order


def _takes_all_samples(index: Any, dims: int) -> bool:
    """Whether an index leaves the first dimension whole: `[:, -1]`, `[..., :-1, :]`."""
    if not isinstance(index, tuple) or not index:
        return False
    if not all(isinstance(each, (int, slice, type(...))) for each in index):
        return False
    if index[0] is ...:
        return len(index) - 1 < dims and ... not in index[1:]
    return bool(index[0] == slice(None))
