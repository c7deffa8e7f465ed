"""What the functions of einops make of batches, by their patterns."""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence

from .layout import along, axis
from .values import COUPLES, LOCAL_ROWS, SAME, Items, Value, entries, made_of, of

_AXES = re.compile(r"\(([^()]*)\)|(\S+)")


def einops(name: str, given: Sequence[Value], words: Mapping[str, Value]) -> Value | None:
    """What a function of einops makes of a tensor; None where that is not known.

    Args:
        name: the function. given: its arguments, of which the second one is the pattern, the last one that of pack and
            unpack. words: those that have a name, as the lengths of axes.
    """
    local = [value for value in entries([*given, *words.values()]) if value.is_local]
    if name in ("pack", "unpack") and given:
        return _packed(name, given, local)
    pattern = given[1].constant if len(given) > 1 else None
    if not isinstance(pattern, str) or "->" not in pattern:
        return None
    before, after = (_axes(side) for side in pattern.split("->"))
    samples = _samples(given[0], before, words)
    if not samples:
        return None
    places = [at for at, axes in enumerate(after) if axes[:1] == (samples,)]
    if not places:
        operation = given[2].constant if name == "reduce" and len(given) > 2 else None
        gone = operation in ("mean", "sum") and not any(samples in axes for axes in after)
        return made_of(operation if gone else "unknown", local, reason="" if gone else COUPLES)  # type: ignore[arg-type]
    if set(after[places[0]][1:]) - {each for axes in before for each in axes}:
        return None  # each sample comes several times
    place = places[0]
    return made_of(along(-1 if place >= 2 and place == len(after) - 1 else place), local)


def _axes(side: str) -> list[tuple[str, ...]]:
    """`b n (h d)`: the names of each axis."""
    return [tuple(inner.split()) if not plain else (plain,) for inner, plain in _AXES.findall(side)]


def _samples(tensor: Value, before: list[tuple[str, ...]], words: Mapping[str, Value]) -> str:
    """The name of the samples' axis; "" where that is not known."""
    if tensor.kind in LOCAL_ROWS:
        at = axis(tensor.kind)
        usable = at is not None and -len(before) <= at < len(before) and not any("..." in axes for axes in before[:at])
        names = before[at] if at is not None and usable else ()
        if len(names) > 1 and words.get(names[0], SAME).kind != "size":
            return ""  # neighbours may be put together
        return names[0] if names and names[0].isidentifier() else ""
    sizes = [name for name, value in words.items() if value.kind == "size"]
    return sizes[0] if len(sizes) == 1 and not tensor.is_local else ""


def _packed(name: str, given: Sequence[Value], local: list[Value]) -> Value | None:
    pattern = given[-1].constant
    rows = [value.kind in LOCAL_ROWS and axis(value.kind) == 0 for value in local]
    if not isinstance(pattern, str) or pattern.split()[:1] == ["*"] or not all(rows):
        return None
    return made_of("batch", local) if name == "unpack" else of(Items("tuple", {0: made_of("rows", local), 1: SAME}))
