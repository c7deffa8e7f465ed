"""What parameters get of a batch that is given part by part: `model(*batch)`."""

from __future__ import annotations

from collections.abc import Callable

from .held_values import local_entries
from .operations import element
from .values import Items, Value


def parts_given(value: Value, number: int, part: Callable[[Value, int], Value]) -> list[Value]:
    """What each of a number of parameters gets of a batch, `model(*batch)`, or of its parts in a list,
    `model(*[part.to(device) for part in batch])`; nothing for anything else.

    A tensor, too, would be given so, sample by sample, but not to so many parameters: that ends with an error.
    """
    if number < 1 or (value.kind == "batch" and (value.things or value.dimensions)):
        return []
    if value.kind == "batch":
        return [part(value, place) for place in range(number)]
    lists = [thing for thing in value.only(Items) if isinstance(thing, Items)]
    if value.is_local or len(lists) != len(value.things) or not local_entries(value):
        return []
    if any(each.shape == "dict" or each.known or each.extended or each.by_sample for each in lists):
        return []
    return [element(value, place) for place in range(number)]
