"""Which batches lie one after another in a tensor, `torch.cat([images, augmented])`, and what takes them apart again.

Each rank has its part of each of them, so that cuts between batches are the same for all; others would put a rank's
samples beside others of its own.
"""

from __future__ import annotations

import ast
from collections import Counter
from collections.abc import Iterable, Sequence
from dataclasses import replace

from .values import LOCAL_ROWS, Items, Loader, Value, entries, made_of, of

Batches = tuple[Loader, ...]
_MOST = 64  # batches in one tensor: `224 * len(x)` counts something else
_CUT_BY_SIZES = ("split", "split_with_sizes")


def sure_size(loader: Loader) -> Batches:
    """What the batch size of a loader counts, which leaves out a last batch that is smaller."""
    words = ((word.arg, word.value) for word in loader.call.keywords)
    drops = any(
        name == "drop_last" and isinstance(given, ast.Constant) and given.value is True for name, given in words
    )
    return (loader,) if drops else ()


def of_batches(value: Value, batches: Batches) -> Value:
    """A value with those batches one after another."""
    return value if value.batches == batches else replace(value, batches=batches)


def alike(values: Iterable[Value]) -> Batches:
    """The batches that lie in all of some values that are of this rank's samples; none where they differ."""
    found = {value.batches for value in values if value.is_local}
    return found.pop() if len(found) == 1 else ()


def in_a_row(values: Sequence[Value]) -> Batches:
    """The batches of tensors that are put one after another; none where those of one are not known."""
    known = all(value.batches for value in values)
    return tuple(each for value in values for each in value.batches) if known else ()


def cut_apart(name: str, value: Value, given: Sequence[Value]) -> Value | None:
    """What `chunk(2)` or `split([n, n])` makes of a tensor along its samples; None where a cut may go through a batch.

    Args: the method's name; the tensor; what else it is given.
    """
    if value.kind == "picked":
        return None
    groups = _in_equal_parts(value.batches, given) if name == "chunk" else None
    if name in _CUT_BY_SIZES and given:
        groups = _in_parts(value.batches, given[0])
    return None if not groups else of(Items("tuple", {at: _rows(value, each) for at, each in enumerate(groups)}))


def between(value: Value, lower: Value | None, upper: Value | None) -> Value | None:
    """`features[n : 2 * n]`, of whole batches; None where a bound may lie within one."""
    start = 0 if lower is None else _place(value.batches, lower)
    end = len(value.batches) if upper is None else _place(value.batches, upper)
    if value.kind == "picked" or start is None or end is None or start >= end:
        return None
    return _rows(value, value.batches[start:end])


def in_front(value: Value, sizes: Sequence[Value]) -> Value | None:
    """`features.view(2, n, -1)`: a dimension for the batches, before that of the samples; None for other sizes."""
    number, size = sizes[0].constant if sizes else None, sizes[1] if len(sizes) > 1 else None
    if not isinstance(number, int) or number < 2 or number != len(value.batches) or len(set(value.batches)) > 1:
        return None
    if size is None or size.batches != value.batches[:1]:
        return None
    return of_batches(made_of("rows_second", [value, size]), value.batches[:1])


def are_paired(value: Value, size: Value) -> bool:
    """Whether a tensor of several batches is given another number of rows: rows of one batch would be put together."""
    return len(value.batches) > 1 and bool(size.batches) and Counter(size.batches) != Counter(value.batches)


def counted(operator: ast.operator, left: Value, right: Value) -> Batches:
    """The batches that `2 * n`, `n // 2` or `n + m` counts."""
    if isinstance(operator, ast.Add):
        return in_a_row([left, right])
    size, number = (left, right.constant) if left.batches else (right, left.constant)
    if not isinstance(number, int) or isinstance(number, bool) or number < 1 or (left.batches and right.batches):
        return ()
    if isinstance(operator, ast.Mult):
        return size.batches * number if len(size.batches) * number <= _MOST else ()
    if isinstance(operator, ast.FloorDiv) and size is left:
        parts = _in_equal_parts(size.batches, [right])
        return parts[0] if parts else ()
    return ()


def passed_on(result: Value, given: Iterable[Value]) -> Value:
    """What a network gives back: as many samples as it is given, where they are not counted in it."""
    batches = alike(value for value in entries(given) if value.kind in LOCAL_ROWS)
    for thing in result.things if batches else ():
        if isinstance(thing, Items):
            thing.known = {key: passed_on(each, given) for key, each in thing.known.items()}
            thing.rest = None if thing.rest is None else passed_on(thing.rest, given)
    rows = result.kind in LOCAL_ROWS - {"picked"} and not result.batches
    return of_batches(result, batches) if rows else result


def _in_equal_parts(batches: Batches, given: Sequence[Value]) -> list[Batches]:
    number = given[0].constant if given else None
    if not isinstance(number, int) or number < 1 or len(batches) % number:
        return []
    length = len(batches) // number
    parts = [batches[at : at + length] for at in range(0, len(batches), length)] if length else []
    return parts if len({frozenset(Counter(each).items()) for each in parts}) == 1 else []


def _in_parts(batches: Batches, sizes: Value) -> list[Batches]:
    lists = [thing for thing in sizes.things if isinstance(thing, Items)]
    several = list(lists[0].known.values()) if len(lists) == 1 else []
    one = lists[0].rest if len(lists) == 1 and not several else sizes  # all that a list holds are alike
    if one is not None and one.batches:
        several = [one] * (len(batches) // len(one.batches))
    groups = []
    for size in several:
        groups.append(batches[: len(size.batches)])
        if not size.batches or Counter(groups[-1]) != Counter(size.batches):
            return []
        batches = batches[len(size.batches) :]
    return groups if not batches else []


def _place(batches: Batches, bound: Value) -> int | None:
    """Between which batches a bound lies: the number of those before it."""
    length = len(bound.batches)
    return length if length and Counter(batches[:length]) == Counter(bound.batches) else None


def _rows(value: Value, batches: Batches) -> Value:
    kind = value.kind if value.kind in LOCAL_ROWS - {"batch"} else "rows"
    return of_batches(made_of(kind, [value]), batches)
