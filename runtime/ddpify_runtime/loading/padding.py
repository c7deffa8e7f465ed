"""Batches that a collate function pads to their longest sample: a rank pads its samples to the longest of all ranks.

What it is padded with, and on which side, is seen where parts of a batch are collated beside the whole.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import NamedTuple

import torch
from torch import Tensor

Number = int | float | complex | bool

AFTER, BEFORE = "after", "before"


class Rows(NamedTuple):
    """The form of a tensor with one row for each sample.

    sizes: of the dimensions behind the first; None for one that is as long as the longest sample; None: any.
    value: what is behind or before a sample; None until that was seen. sides: where it may be, as far as seen.
    """

    sizes: tuple[int | None, ...] | None
    value: Number | None = None
    sides: frozenset[str] = frozenset((AFTER, BEFORE))

    @property
    def is_padded(self) -> bool:
        """Whether there are dimensions as long as the longest sample."""
        return self.sizes is not None and None in self.sizes


def seen(whole: Tensor, parts: Sequence[Tensor]) -> Rows | None:
    """How parts `[rank::len(parts)]` of a batch have to be padded for their rows to be those of the whole.

    Args:
        whole: of shape (samples, ...). parts: as long as their own longest samples, in order.

    Returns:
        None if the whole is not made of them so.
    """
    for rank, part in enumerate(parts):
        if part.dim() != whole.dim() or part.dtype != whole.dtype or part.device != whole.device:
            return None
        if part.layout is not torch.strided or len(part) != len(range(rank, len(whole), len(parts))):
            return None
    lengths = zip(*(part.shape[1:] for part in parts), strict=True)
    sizes = list(zip(whole.shape[1:], lengths, strict=True))
    if any(max(each) != size for size, each in sizes):
        return None
    values: dict[str, Number] = {}
    for side in (AFTER, BEFORE):
        found = [_around(whole[rank :: len(parts)], part, side) for rank, part in enumerate(parts)]
        if None not in found:
            padding = torch.cat([each for each in found if each is not None])
            if len(padding) and bool(_equal(padding, padding[0]).all()):
                values[side] = padding[0].item()
    if not values or any(not _same(value, next(iter(values.values()))) for value in values.values()):
        return None
    varied = tuple(None if min(each) != size else size for size, each in sizes)
    return Rows(varied, next(iter(values.values())), frozenset(values))


def _around(rows: Tensor, part: Tensor, side: str) -> Tensor | None:
    """What is around a part in the rows of the whole, on one side of it; None if the part is not there."""
    place = _place(rows, part, side)
    if not bool(_equal(rows[place], part).all()):
        return None
    outside = torch.ones_like(rows, dtype=torch.bool)
    outside[place] = False
    return rows[outside]


def _place(rows: Tensor, part: Tensor, side: str) -> tuple[slice, ...]:
    """Where a part is in rows as long as the longest."""
    sizes = zip(rows.shape, part.shape, strict=True)
    return tuple(slice(size) if side == AFTER else slice(whole - size, None) for whole, size in sizes)


def _equal(one: Tensor, other: Tensor) -> Tensor:
    return (one == other) | ((one != one) & (other != other))  # no number is equal to itself if it is NaN


def _same(one: Number, other: Number) -> bool:
    return one == other or (one != one and other != other)


def merged(one: Rows, other: Rows) -> Rows | None:
    """What two batches have shown; None if they do not agree."""
    if one.sizes is None or other.sizes is None or len(one.sizes) != len(other.sizes):
        return one if one.sizes == other.sizes else None
    sizes = tuple(size if size == of_other else None for size, of_other in zip(one.sizes, other.sizes, strict=True))
    known = [each.value for each in (one, other) if each.value is not None]
    if len(known) == 2 and not _same(known[0], known[1]):
        return None
    sides = one.sides & other.sides
    return Rows(sizes, known[0] if known else None, sides) if sides else None


def lengths(part: Tensor, of: Rows) -> Iterator[int]:
    """How long a part is, along the dimensions that are padded.

    Raises:
        ValueError: its other dimensions have other sizes.
    """
    assert of.sizes is not None
    if part.dim() != len(of.sizes) + 1:
        raise ValueError
    for size, known in zip(part.shape[1:], of.sizes, strict=True):
        if known is None:
            yield size
        elif size != known:
            raise ValueError


def padded(part: Tensor, of: Rows, longest: Iterator[int]) -> Tensor:
    """A part as long as the longest of all ranks.

    Args:
        of: how it is padded, on one side. longest: the sizes of all dimensions that are, those of this part first.
    """
    assert of.sizes is not None and of.value is not None
    sizes = [size if size is not None else next(longest) for size in of.sizes]
    if [*part.shape[1:]] == sizes:
        return part
    whole = part.new_full([len(part), *sizes], of.value, pin_memory=part.is_pinned())
    (side,) = of.sides
    whole[_place(whole, part, side)] = part
    return whole
