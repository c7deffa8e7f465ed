"""Whether anything that a data set holds has changed: asked around each batch, in loops that run in C.

What has changed is told by snapshots as held_state.py takes them, which take four times as long for a small data set;
one of an earlier moment is made of a look afterwards, where there is something to tell (HAZARDS D20).
"""

from __future__ import annotations

from itertools import chain
from operator import attrgetter, is_, itemgetter
from types import MappingProxyType, ModuleType
from typing import Any, NamedTuple

from torch import Tensor

from ..torch_internals import versions_of
from .held_state import BYTES, INTO, PLAIN, Places, Reached, Snapshot, is_file, is_of_class, state_of


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
        self.last: Look | None = None  # what `differs` has seen, where nothing was different
        self._plan()
        self._first = self._seen

    def look(self) -> Look:
        """What is held now."""
        try:
            found = self._found()
            if self._fits(found):
                return Look(*found, self._states(found[2]))
        except _GONE:
            pass
        self._plan()
        found = self._found()
        return Look(*found, self._states(found[2]))

    def is_as_made(self) -> bool:
        """Whether the very objects are held that were when this was made."""
        try:
            sizes, _, values = self._found()
        except _GONE:
            return False
        return _same(values, self._first) and all(sizes) and not self._is_filled()

    def differs(self, before: Look) -> bool:
        """Whether something has changed since the last look."""
        self.last = None
        try:
            found = self._found()
            same = _same(found[2], before.values) and found[0] == before.sizes and _same(found[1], before.keys)
            if same and not self._is_filled() and self._states(found[2]) == before.states:
                self.last = before
        except _GONE:
            pass
        return self.last is None

    def snapshot(self, last: Look) -> Snapshot:
        """What `held_state.snapshot` would have found at the time of the last look."""
        states: list[Any] = [None] * len(last.values)
        for place, state in zip(self._tensors + self._sized + self._others, last.states, strict=True):
            states[place] = state
        found = zip(self._places(last), last.values, states, strict=True)
        return {place: (value, state) for place, value, state in found if place}

    def _plan(self) -> None:
        """Where to look, as long as values are of the same types, and modules the same."""
        held = [(number, each, each.places()) for number, each in enumerate(self._of.held) if each.size <= INTO]
        self._slow = [(number, each) for number, each, places in held if places is None]
        known = [(number, places) for number, _, places in held if places is not None]
        whole = [(number, each) for number, places in known for each in places.whole]
        self._whole = [each for each in whole if len(each[1])]
        self._empty = [each for _, each in whole if not len(each)]
        self._sizes = [each for _, each in self._whole]
        self._keys = [_keys(each) for each in self._sizes if isinstance(each, _MAPPINGS)]
        self._values = [_values(each) for each in self._sizes]
        self._plan_named(known)
        self.last = None
        found = self._found()
        values = found[2]
        places = self._places(Look(*found, []))
        self._seen = values
        self._types = [*map(type, values)]
        self._imported = [at for at, value in enumerate(values) if isinstance(value, ModuleType)]
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

    def _plan_named(self, known: list[tuple[int, Places]]) -> None:
        """Where the variables are: those of a dict are had at once, and one attribute of several objects."""
        entries: dict[int, tuple[dict[str, Any], list[tuple[int, str, str]]]] = {}
        attributes: dict[str, list[tuple[int, str, Any]]] = {}
        for number, places in known:
            for name, of, key in places.entries:
                entries.setdefault(id(of), (of, []))[1].append((number, name, key))
            for name, of, key in places.attributes:
                attributes.setdefault(key, []).append((number, name, of))
        self._entries: list[tuple[Any, dict[str, Any]]] = []
        self._attributes: list[tuple[Any, list[Any]]] = []
        self._absent: list[tuple[Any, list[str]]] = []
        self._named: list[tuple[int, Any] | None] = []
        for of, named in entries.values():
            there = [each for each in named if each[2] in of]
            if missing := [key for _, _, key in named if key not in of]:
                self._absent.append((of.keys(), missing))
            if there:
                there = there * 2 if len(there) == 1 else there  # of one key it gives no tuple
                self._entries.append((itemgetter(*(key for _, _, key in there)), of))
                self._named += [(number, name) if name else None for number, name, _ in there]
        for key, having in attributes.items():
            self._attributes.append((attrgetter(key), [of for _, _, of in having]))
            self._named += [(number, name) if name else None for number, name, _ in having]

    def _fits(self, found: _Found) -> bool:
        """Whether what was found is of the kinds that were planned for."""
        values = found[2]
        if _same(values, self._seen):
            return not self._is_filled()
        imported = self._imported
        of_same_types = [*map(type, values)] == self._types and all(found[0]) and not self._is_filled()
        self._seen, seen = values, self._seen
        return of_same_types and all(values[at] is seen[at] for at in imported)

    def _is_filled(self) -> bool:
        """Whether something is there that was not."""
        for keys, missing in self._absent:
            if not keys.isdisjoint(missing):
                return True
        return any(self._empty)

    def _found(self) -> _Found:
        """Sizes, keys and values."""
        keys = [*chain.from_iterable(self._keys)]
        values = [*chain.from_iterable(self._values)]
        for get, of in self._entries:
            values += get(of)
        for get, having in self._attributes:
            values += map(get, having)
        sizes = [*map(len, self._sizes)]
        for _, held in self._slow:
            slow = held.values()
            keys += slow
            values += slow.values()
            sizes.append(len(slow))
        return sizes, keys, values

    def _states(self, values: list[Any]) -> list[Any]:
        of = values.__getitem__
        states = [*versions_of(map(of, self._tensors))]
        if self._sized:
            states += map(len, map(of, self._sized))
        if self._others:
            states += [state_of(of(at), BYTES[False]) for at in self._others]
        return states

    def _places(self, look: Look) -> list[tuple[int, Any] | None]:
        """The number of what holds each value, and its name there; None for code."""
        places: list[tuple[int, Any] | None] = []
        keys, values = iter(look.keys), iter(look.values)
        sizes = iter(look.sizes)
        for (number, whole), size in zip(self._whole, sizes, strict=False):
            for at in range(size):
                key, value = next(keys) if isinstance(whole, _MAPPINGS) else at, next(values)
                of_class = isinstance(whole, MappingProxyType)
                places.append((number, key) if not of_class or is_of_class(key, value) else None)
        places += self._named
        for (number, _), size in zip(self._slow, sizes, strict=True):
            places += [(number, next(keys)) for _ in range(size)]
        return places


_Found = tuple[list[int], list[Any], list[Any]]
# Raised where a variable was deleted, or a tensor of inference took the place of another.
_GONE = (KeyError, AttributeError, ValueError, RuntimeError)
_MAPPINGS = (dict, MappingProxyType)


def _keys(of: Any) -> Any:
    return dict.keys(of) if isinstance(of, dict) else of.keys()


def _values(of: Any) -> Any:
    return of if not isinstance(of, _MAPPINGS) else dict.values(of) if isinstance(of, dict) else of.values()


def _same(one: list[Any], other: list[Any]) -> bool:
    return len(one) == len(other) and all(map(is_, one, other))
