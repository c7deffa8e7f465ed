"""Along which dimension of a tensor its samples lie, and what changes that."""

from __future__ import annotations

from collections.abc import Sequence

from .values import LOCAL_ROWS, Kind, Value

# The dimension of the samples: None where that is not known.
_AXES: dict[Kind, int | None] = {
    "batch": 0,
    "rows": 0,
    "picked": 0,
    "rows_second": 1,
    "rows_last": -1,
    "rows_moved": None,
}
_KINDS: dict[int | None, Kind] = {0: "rows", 1: "rows_second", -1: "rows_last"}
Constants = Sequence[int | None]


def axis(kind: Kind) -> int | None:
    """The dimension of the samples in a tensor of that kind; None where that is not known."""
    return _AXES[kind]


def along(dimension: int | None) -> Kind:
    """The kind of a tensor with its samples along a dimension."""
    return _KINDS.get(dimension, "rows_moved")


def differ(kinds: set[Kind]) -> bool:
    """Whether tensors that are combined have their samples along dimensions that are known not to be the same."""
    return len({axis(kind) for kind in kinds} - {None}) > 1


def together(kinds: set[Kind]) -> Kind:
    """What the combination of tensors is that have their samples along the same dimension."""
    for kind in ("rows_moved", "picked", "rows_second", "rows_last"):
        if kind in kinds:
            return kind
    return "rows"


def unsqueezed(kind: Kind, at: int | None) -> Kind:
    """After a dimension of one is put in."""
    samples = axis(kind)
    if samples is None or at is None:
        return "rows_moved"
    if samples < 0:
        return "rows_moved" if at == -1 else kind
    return along(samples + 1) if 0 <= at <= samples else kind


def squeezed(kind: Kind, at: int | None) -> Kind:
    """After a dimension of one is left out; all of them if none is named."""
    samples = axis(kind)
    if at is None:
        return kind if samples in (0, -1) else "rows_moved"
    return along(samples - 1) if samples is not None and 0 <= at < samples else kind


def transposed(kind: Kind, first: int | None, second: int | None, known: int | None = None) -> Kind:
    """After two dimensions are exchanged, of so many, where that is known."""
    samples = axis(kind)
    if samples is None or first is None or second is None:
        return "rows_moved"
    if samples == -1 and {first, second} == {0, 1}:
        return "rows"
    if samples in (first, second):
        place = second if samples == first else first
        return along(-1 if place >= 1 and place + 1 == known else place)
    return kind if samples >= 0 else "rows_moved"


def turned(kind: Kind) -> Kind:
    """A matrix with its rows and columns exchanged."""
    samples = axis(kind)
    return "rows_moved" if samples is None else "rows_last" if samples == 0 else "rows"


def mirrored(name: str, tensor: Value) -> Kind:
    """A tensor with its last two dimensions exchanged, `x.mT`, or all of them turned around, `x.T`."""
    known = tensor.dimensions
    if known == 2 or (name == "T" and known is None):
        return turned(tensor.kind)
    return transposed(tensor.kind, known - 2, known - 1) if name == "mT" and known and known > 2 else "rows_moved"


def permuted(kind: Kind, order: Constants) -> Kind:
    """After all dimensions are put into another order."""
    samples = axis(kind)
    if samples is None or not order or None in order:
        return "rows_moved"
    found = [number % len(order) for number in order if number is not None]
    place = found.index(samples % len(order)) if samples % len(order) in found else None
    if place is not None and place >= 1 and place == len(order) - 1:
        return "rows_last"
    return along(place)


def flattened(kind: Kind, start: int | None) -> Kind:
    """After the dimensions from one on are made one."""
    samples = axis(kind)
    return kind if samples == 0 or (samples == 1 and (start or 0) >= 2) else "rows_moved"


def reshaped(kind: Kind, sizes: Sequence[Value]) -> Kind | None:
    """After the sizes are given anew; None where the first is a number of the script's own, not that of the samples."""
    samples = axis(kind)
    first = sizes[0] if sizes else None
    steps = first is not None and first.kind == "same" and not first.things
    if samples == 1 and steps and len(sizes) > 2 and sizes[1].kind == "size":
        return kind  # each of the samples with its heads: `x.view(steps, len(x) * heads, -1)`
    if samples != 0:
        return "rows_moved"
    if first is not None and first.constant == -1 and any(each.kind == "size" for each in sizes[1:]):
        return None  # no dimension is that of the samples
    if first is None or first.kind in ("size", "shape", *LOCAL_ROWS) or first.constant == -1 or first.things:
        return "rows"
    if first.kind != "same":
        return "rows_moved"
    if first.constant == 1 and len(sizes) > 1 and (sizes[1].kind == "size" or sizes[1].constant == -1):
        return "rows_last" if len(sizes) == 2 else "rows_second"
    return None


def reduced(kind: Kind, dimensions: Sequence[int], keeps: bool) -> Kind:
    """After dimensions other than that of the samples are summed, or the like."""
    samples = axis(kind)
    if samples is None or samples <= 0 or keeps:
        return kind
    return along(samples - sum(0 <= each < samples for each in dimensions))


def over_samples(kind: Kind, dimension: object, known: int | None = None) -> bool:
    """Whether a reduction runs over the samples; dimension: a number, several, None for all, "unknown". known: how many
    dimensions there are, where that is known."""
    if dimension is None or dimension == "unknown":
        return True
    dimensions = dimension if isinstance(dimension, tuple) else (dimension,)
    samples = axis(kind)
    if known and samples is not None:
        return samples % known in {each % known for each in dimensions}
    if samples is None or samples in dimensions:
        return True
    if samples == -1:  # the second one, or any behind
        return any(isinstance(each, int) and each > 0 for each in dimensions)
    return samples == 1 and -2 in dimensions  # of three, as a rule
