"""Whether anything that a data set holds has changed: asked around each batch, in loops that run in C.

What has changed is told by snapshots as held_state.py takes them, which take four times as long for a small data set;
one of an earlier moment is made of a look afterwards, where there is something to tell (HAZARDS D20).
"""

from __future__ import annotations

from itertools import chain, repeat
from operator import is_
from types import MappingProxyType, ModuleType
from typing import Any, NamedTuple

from torch import Tensor

from ..torch_internals import versions_of
from .held_state import BYTES, INTO, PLAIN, Reached, Snapshot, is_code, is_file, state_of

_ABSENT = object()


class Look(NamedTuple):
    """What was held at one moment. sizes: of each mapping and list. keys: of the mappings. values: all. states: what
    can change in those that stay the same objects."""

    sizes: list[int]
    keys: list[Any]
    values: list[Any]
    states: list[Any]


class Watch:
    """Looks at what is reached from a data set and its collate function."""

    def __init__(self, of: Reached) -> None:
        self._of = of
        self._plan()

    def look(self) -> Look:
        """What is held now."""
        try:
            sizes, keys, values = self._found()
            if self._fits(sizes, values):
                return Look(sizes, keys, values, self._states(values))
        except (ValueError, RuntimeError):  # a variable was deleted, or a tensor of inference took the place of another
            pass
        self._plan()
        sizes, keys, values = self._found()
        return Look(sizes, keys, values, self._states(values))

    def differs(self, before: Look) -> bool:
        """Whether something has changed since the last look."""
        try:
            sizes, keys, values = self._found()
        except ValueError:
            return True
        same = sizes == before.sizes and _same(values, before.values) and _same(keys, before.keys)
        return not same or self._states(values) != before.states

    def snapshot(self, last: Look) -> Snapshot:
        """What `held_state.snapshot` would have found at the time of the last look."""
        states: list[Any] = [None] * len(last.values)
        for place, state in zip(self._tensors + self._sized + self._others, last.states, strict=True):
            states[place] = state
        found = zip(self._places(last), last.values, states, strict=True)
        return {place: (value, state) for place, value, state in found if place and value is not _ABSENT}

    def _plan(self) -> None:
        """Where to look, as long as values are of the same types, and modules the same."""
        held = [(number, each, each.places()) for number, each in enumerate(self._of.held) if each.size <= INTO]
        self._slow = [(number, each) for number, each, places in held if places is None]
        known = [(number, places) for number, _, places in held if places is not None]
        self._whole = [(number, each) for number, places in known for each in places.whole]
        entries = [(number, *each) for number, places in known for each in places.entries]
        attributes = [(number, *each) for number, places in known for each in places.attributes]
        self._named: list[tuple[int, Any] | None] = [
            (number, name) if name else None for number, name, _, _ in [*entries, *attributes]
        ]
        self._entries = [each[2] for each in entries], [each[3] for each in entries], repeat(_ABSENT)
        self._attributes = [each[2] for each in attributes], [each[3] for each in attributes]
        self._sizes = [each for _, each in self._whole]
        full = [each for each in self._sizes if len(each)]  # the others are told by their sizes
        self._keys = [_keys(each) for each in full if isinstance(each, _MAPPINGS)]
        self._values = [_values(each) for each in full]
        sizes, keys, values = self._found()
        places = self._places(Look(sizes, keys, values, []))
        self._filled = [bool(size) for size in sizes]
        self._types = [*map(type, values)]
        self._imported = [at for at, value in enumerate(values) if isinstance(value, ModuleType)]
        self._as_imported = [values[at] for at in self._imported]
        self._tensors: list[int] = []
        self._sized: list[int] = []
        self._others: list[int] = []
        for at, (place, value) in enumerate(zip(places, values, strict=True)):
            if place is None or isinstance(value, PLAIN) or (is_file(value) and self._of.held[place[0]].seeks):
                continue
            if isinstance(value, Tensor) and not value.is_inference():
                self._tensors.append(at)
            elif isinstance(value, (dict, list)):
                self._sized.append(at)
            elif is_file(value) or type(value).__name__ == "ndarray" or state_of(value, BYTES[False]) is not None:
                self._others.append(at)

    def _fits(self, sizes: list[int], values: list[Any]) -> bool:
        imported = map(values.__getitem__, self._imported)
        alike = [*map(type, values)] == self._types and [*map(bool, sizes)] == self._filled
        return alike and all(map(is_, imported, self._as_imported))

    def _found(self) -> tuple[list[int], list[Any], list[Any]]:
        """Sizes, keys and values."""
        keys = [*chain.from_iterable(self._keys)]
        values = [
            *chain.from_iterable(self._values),
            *map(dict.get, *self._entries),
            *map(getattr, *self._attributes),
        ]
        sizes = [*map(len, self._sizes)]
        for _, held in self._slow:
            slow = held.values()
            keys += slow
            values += slow.values()
            sizes.append(len(slow))
        return sizes, keys, values

    def _states(self, values: list[Any]) -> list[Any]:
        of = values.__getitem__
        others = [state_of(of(at), BYTES[False]) for at in self._others]
        return [*versions_of(map(of, self._tensors)), *map(len, map(of, self._sized)), *others]

    def _places(self, look: Look) -> list[tuple[int, Any] | None]:
        """The number of what holds each value, and its name there; None for code."""
        places: list[tuple[int, Any] | None] = []
        keys, values = iter(look.keys), iter(look.values)
        sizes = iter(look.sizes)
        for (number, whole), size in zip(self._whole, sizes, strict=False):
            for at in range(size):
                key, value = next(keys) if isinstance(whole, _MAPPINGS) else at, next(values)
                places.append(None if isinstance(whole, MappingProxyType) and is_code(value) else (number, key))
        places += self._named
        for (number, _), size in zip(self._slow, sizes, strict=True):
            places += [(number, next(keys)) for _ in range(size)]
        return places


_MAPPINGS = (dict, MappingProxyType)


def _keys(of: Any) -> Any:
    return dict.keys(of) if isinstance(of, dict) else of.keys()


def _values(of: Any) -> Any:
    return of if not isinstance(of, _MAPPINGS) else dict.values(of) if isinstance(of, dict) else of.values()


def _same(one: list[Any], other: list[Any]) -> bool:
    return len(one) == len(other) and all(map(is_, one, other))
