"""Which values in a batch have one row for each sample: found by collating parts of it beside the whole."""

from __future__ import annotations

from collections import UserDict
from collections.abc import Callable, Iterator, Mapping, Sequence
from typing import Any, Literal, TypeAlias

import torch
from torch import Tensor

from ..lazy.entries import Entries
from ..lazy.labels import Labels
from ..lazy.outputs import loaded
from . import padding
from .padding import Rows

# For each value in a batch: rows of a tensor, entries of a list, a list of texts, which are joined when they are looked
# at, or the forms of what a container holds. None: a rank's part cannot be told from it.
Form: TypeAlias = "Rows | Literal['entries', 'texts'] | dict[Any, Form] | list[Form] | None"


def form(whole: Any, parts: Sequence[Any]) -> Form:
    """How a batch is made of parts `[rank::len(parts)]` of its samples; None if it is not.

    Args:
        whole: the batch of all samples. parts: the batches of the parts, in order.
    """
    if any(type(part) is not type(whole) for part in parts):
        return None
    if isinstance(whole, Tensor):
        if not whole.dim():
            return None
        return Rows(tuple(whole.shape[1:])) if _interleaved(whole, parts) else padding.seen(whole, parts)
    if isinstance(whole, (dict, UserDict)):
        if any(part.keys() != whole.keys() for part in parts):
            return None
        if isinstance(whole, UserDict) and not all(equal(_beside(part), _beside(whole)) for part in parts):
            return None
        fields = {key: form(value, [part[key] for part in parts]) for key, value in whole.items()}
        return None if None in fields.values() else fields
    if isinstance(whole, (list, tuple)):
        if all(len(part) == len(whole) for part in parts):
            values = [form(value, [part[place] for part in parts]) for place, value in enumerate(whole)]
            return None if None in values else values
        if type(whole) not in (list, tuple) or not _interleaved(whole, parts):
            return None
        return "texts" if all(isinstance(entry, str) for entry in whole) else "entries"
    return None


def _beside(fields: UserDict[Any, Any]) -> dict[str, Any]:
    """What a class like transformers' BatchEncoding has beside its fields."""
    return {name: value for name, value in vars(fields).items() if name != "data"}


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
    return _mapped(of, lambda rows: Rows(None))


def merged(one: Form, other: Form) -> Form:
    """What two batches have shown; None if they are of different forms."""
    if isinstance(one, Rows) and isinstance(other, Rows):
        return padding.merged(one, other)
    if isinstance(one, dict) and isinstance(other, dict) and one.keys() == other.keys():
        fields = {key: merged(value, other[key]) for key, value in one.items()}
        return None if None in fields.values() else fields
    if isinstance(one, list) and isinstance(other, list) and len(one) == len(other):
        values = [*map(merged, one, other)]
        return None if None in values else values
    if one in ("texts", "entries") and other in ("texts", "entries"):
        return one if one == other else "entries"
    return one if one == other else None


def sided(of: Form) -> Form:
    """The same form, where it is known on which side each tensor is padded, and with what; None where it is not.

    What is the same on either side, such as token types that are all 0, is padded as the rest of the batch.
    """
    rows = [each for each in _rows(of) if each.is_padded]
    sides = {side for each in rows if len(each.sides) == 1 for side in each.sides}
    for each in rows:
        if each.value is None or (len(each.sides) > 1 and len(sides) != 1):
            return None
    side = frozenset(sides)
    return _mapped(of, lambda each: each._replace(sides=side) if each.is_padded and len(each.sides) > 1 else each)


def padded_sizes(of: Form) -> int:
    """How many sizes of its tensors are those of the longest sample."""
    return sum(each.sizes.count(None) for each in _rows(of) if each.sizes is not None)


def tensors(batch: Any, of: Form) -> Iterator[Tensor]:
    """The tensors of a batch that have one row for each sample, in the order of its form."""
    if isinstance(of, Rows):
        yield batch
    elif isinstance(of, (dict, list)):
        for key, each in of.items() if isinstance(of, dict) else enumerate(of):
            yield from tensors(batch[key], each)


def _rows(of: Form) -> Iterator[Rows]:
    if isinstance(of, Rows):
        yield of
    elif isinstance(of, (dict, list)):
        for each in of.values() if isinstance(of, dict) else of:
            yield from _rows(each)


def _mapped(of: Form, change: Callable[[Rows], Rows]) -> Form:
    if isinstance(of, Rows):
        return change(of)
    if isinstance(of, dict):
        return {key: _mapped(value, change) for key, value in of.items()}
    if isinstance(of, list):
        return [_mapped(value, change) for value in of]
    return of


def lengths(part: Any, of: Form) -> Iterator[int]:
    """How long the padded tensors of a part are, in the order of its form.

    Raises:
        ValueError: it has another form.
    """
    for value, each in _leaves(part, of):
        if isinstance(each, Rows) and each.is_padded:
            if not isinstance(value, Tensor):
                raise ValueError
            yield from padding.lengths(value, each)


def entries(part: Any, of: Form, rows: int) -> Iterator[Sequence[Any]]:
    """The lists of a part that are joined at once, with an entry for each of its rows, in the order of its form.

    Raises:
        ValueError: it has another form.
    """
    for value, each in _leaves(part, of):
        if each == "entries":
            if not isinstance(value, (list, tuple)) or len(value) != rows:
                raise ValueError
            yield value


def _leaves(part: Any, of: Form) -> Iterator[tuple[Any, Form]]:
    """What a part holds beside containers, each with its form."""
    if not isinstance(of, (dict, list)):
        yield part, of
        return
    if not isinstance(part, (Mapping, list, tuple)) or len(part) != len(of):
        raise ValueError
    for key, each in of.items() if isinstance(of, dict) else enumerate(of):
        if isinstance(part, Mapping) and key not in part:
            raise ValueError
        yield from _leaves(part[key], each)


def has_entries(of: Form) -> bool:
    """Whether a batch holds lists that are joined at once."""
    values = of.values() if isinstance(of, dict) else of if isinstance(of, list) else ()
    return of == "entries" or any(map(has_entries, values))


def sharded(
    part: Any,
    of: Form,
    rows: int,
    total: int,
    labels: Iterator[Labels],
    longest: Iterator[int],
    joined: Iterator[Sequence[Any]],
) -> Any:
    """A part of a batch as something that looks like the whole.

    Args:
        part: the batch of this rank's samples. of: its form. rows, total: the number of samples in it and in the whole.
        labels: one for each tensor in it. longest: for each length of `lengths()`, that of all ranks. joined: for each
            list of `entries()`, that of all samples.

    Raises:
        ValueError: it has another form.
    """
    if type(of) is Rows:
        if isinstance(part, Tensor):
            shape = part.shape
            if shape and shape[0] == rows:
                if of.sizes is None or of.sizes == shape[1:]:
                    return loaded(part, total, next(labels))
                if of.is_padded:
                    return loaded(padding.padded(part, of, longest), total, next(labels))
    elif of == "texts":
        if isinstance(part, (list, tuple)) and len(part) == rows:
            return Entries(part, total)
    elif of == "entries":
        if isinstance(part, (list, tuple)) and len(part) == rows:
            return type(part)(next(joined))
    elif isinstance(of, dict) and isinstance(part, (dict, UserDict)) and part.keys() == of.keys():
        values = {key: sharded(part[key], each, rows, total, labels, longest, joined) for key, each in of.items()}
        if isinstance(part, UserDict):
            made: Any = object.__new__(type(part))
            vars(made).update(vars(part), data=values)
            return made
        return values if type(part) is dict else type(part)(values)
    elif isinstance(of, list) and isinstance(part, (list, tuple)) and len(part) == len(of):
        pairs = zip(part, of, strict=True)
        items = [sharded(value, each, rows, total, labels, longest, joined) for value, each in pairs]
        if type(part) is list:
            return items
        return type(part)(*items) if hasattr(part, "_fields") else type(part)(items)
    raise ValueError
