"""Which values in a batch have one row for each sample: found by collating parts of it beside the whole."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from typing import Any, Literal, TypeAlias

import torch
from torch import Tensor

from ..lazy.entries import Entries
from ..lazy.labels import Labels
from ..lazy.outputs import loaded

# For each value in a batch: rows of a tensor (and their shape), entries of a list, or the forms of what a container
# holds. None: a rank's part cannot be told from it.
Form: TypeAlias = "tuple[Literal['rows', 'entries'], Any] | dict[Any, Form] | list[Form] | None"


def form(whole: Any, parts: Sequence[Any]) -> Form:
    """How a batch is made of parts `[rank::len(parts)]` of its samples; None if it is not.

    Args:
        whole: the batch of all samples. parts: the batches of the parts, in order.
    """
    if any(type(part) is not type(whole) for part in parts):
        return None
    if isinstance(whole, Tensor):
        return ("rows", whole.shape[1:]) if whole.dim() and _interleaved(whole, parts) else None
    if isinstance(whole, dict):
        if any(part.keys() != whole.keys() for part in parts):
            return None
        fields = {key: form(value, [part[key] for part in parts]) for key, value in whole.items()}
        return None if None in fields.values() else fields
    if isinstance(whole, (list, tuple)):
        if all(len(part) == len(whole) for part in parts):
            values = [form(value, [part[place] for part in parts]) for place, value in enumerate(whole)]
            return None if None in values else values
        return ("entries", None) if type(whole) in (list, tuple) and _interleaved(whole, parts) else None
    return None


def _interleaved(whole: Any, parts: Sequence[Any]) -> bool:
    return all(
        len(part) == len(range(rank, len(whole), len(parts))) and equal(whole[rank :: len(parts)], part)
        for rank, part in enumerate(parts)
    )


def equal(one: Any, other: Any) -> bool:
    """Whether two values are the same to the last bit; False where that cannot be told."""
    if type(one) is not type(other):
        return False
    if isinstance(one, Tensor):
        if one.layout is not torch.strided or one.shape != other.shape or one.dtype != other.dtype:
            return False
        return bool(((one == other) | ((one != one) & (other != other))).all())
    if isinstance(one, dict):
        return one.keys() == other.keys() and all(equal(value, other[key]) for key, value in one.items())
    if isinstance(one, (list, tuple)):
        return len(one) == len(other) and all(map(equal, one, other))
    if hasattr(one, "tobytes") and hasattr(one, "shape"):  # an array of numpy's
        return bool(one.shape == other.shape and one.dtype == other.dtype and one.tobytes() == other.tobytes())
    try:
        return bool(one == other or (one != one and other != other))
    except Exception:  # noqa: BLE001  whatever a class of the user's compares by
        return False


def without_sizes(of: Form) -> Form:
    """The same form where the rows may have any shape."""
    return _mapped(of, lambda leaf: (leaf[0], None))


def _mapped(of: Form, change: Callable[[Any], Any]) -> Form:
    if of is None:
        return None
    if isinstance(of, dict):
        return {key: _mapped(value, change) for key, value in of.items()}
    if isinstance(of, list):
        return [_mapped(value, change) for value in of]
    return change(of)  # type: ignore[no-any-return]


def shared(part: Any, of: Form, rows: int, total: int, labels: Iterator[Labels]) -> Any:
    """A part of a batch as something that looks like the whole.

    Args:
        part: the batch of this rank's samples. of: its form. rows, total: the number of samples in it and in the whole.
        labels: one for each tensor in it.
    Raises:
        ValueError: it has another form.
    """
    if type(of) is tuple:
        kind, size = of
        if kind == "rows" and isinstance(part, Tensor):
            shape = part.shape
            if shape and shape[0] == rows and (size is None or size == shape[1:]):
                return loaded(part, total, next(labels))
        elif kind == "entries" and isinstance(part, (list, tuple)) and len(part) == rows:
            return Entries(part, total)
    elif isinstance(of, dict) and isinstance(part, dict) and part.keys() == of.keys():
        values = {key: shared(value, of[key], rows, total, labels) for key, value in part.items()}
        return values if type(part) is dict else type(part)(values)
    elif isinstance(of, list) and isinstance(part, (list, tuple)) and len(part) == len(of):
        made = [shared(value, each, rows, total, labels) for value, each in zip(part, of, strict=True)]
        if type(part) is list:
            return made
        return type(part)(*made) if hasattr(part, "_fields") else type(part)(made)
    raise ValueError
