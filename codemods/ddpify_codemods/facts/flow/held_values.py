"""What values hold: numbers that can be added up over ranks, and lists and dicts with what differs between them."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import replace
from typing import Literal

from .values import ADDITIVE, SAME, Items, Iteration, Kind, Value

OwnEntry = Literal["never", "always", "at times"]  # whether it is a rank's own number; else what all ranks have


def additive(value: Value) -> tuple[Kind, str] | None:
    """What a variable adds up, and in which form; None for anything else."""
    if value.kind in ADDITIVE:
        return value.kind, "number"
    for thing in value.only(Items):
        assert isinstance(thing, Items)
        if thing.shape != "list" and any(local_entries(entry) for entry in thing.all()):
            return None
        if thing.default is not None and (thing.rest is not None or value.only(Items) != [thing]):
            return None  # a rank without a batch would not know its keys
        if any(each.mixed for each in _lists(thing)):
            return None  # a count or a text would be brought together, too
        entries = [part for entry in thing.all() for part in _numbers(entry)]
        kinds = {entry.kind for entry in entries} - {"same"}
        if kinds & {"sum", "size"} and any(entry.kind == "same" and not entry.zero for entry in entries):
            return None  # a sum over ranks of what they have alike
        if any(isinstance(entry.constant, str) for entry in entries):
            return None
        nested = any(local_entries(entry) for entry in thing.all())
        host = all(entry.host or entry.zero for entry in entries)
        if any(entry.array for entry in entries) and not thing.grows:
            return None  # they may have other shapes
        if len(kinds) == 1 and kinds <= ADDITIVE and (host or not nested):
            by_key = "defaultdict" if thing.default is not None else "dict"
            return kinds.pop(), by_key if thing.shape == "dict" else "list" if host else "tensors"
    return None


def _numbers(value: Value, depth: int = 3) -> list[Value]:
    """A value, or those in the lists that it may be."""
    if not local_entries(value):
        return [value]
    several = (thing for thing in value.only(Items) if isinstance(thing, Items))
    if not depth or value.is_local:
        return [Value("unknown")]
    parts = [part for thing in several for each in thing.all() for part in _numbers(each, depth - 1)]
    return parts if all(thing.shape != "dict" for thing in value.only(Items)) else [Value("unknown")]  # type: ignore[union-attr]


def _lists(thing: Items, depth: int = 3) -> Iterator[Items]:
    """A list, and those in it."""
    yield thing
    for value in thing.all() if depth else ():
        for each in value.things:
            if isinstance(each, Items):
                yield from _lists(each, depth - 1)


def is_record(values: Sequence[Value]) -> bool:
    """Whether numbers of this rank stand beside something that is the same on all: `[epoch, loss.item()]`."""
    same = any(not each.is_local and not local_entries(each) and not each.zero for each in values)
    return same and any(each.kind in ADDITIVE for each in values)


def settled(value: Value, in_place: bool = False) -> Value:
    """The value after it has been brought together; other names for a list keep what they had, unless its entries are
    brought together in place."""
    things = set()
    for thing in value.things:
        if isinstance(thing, Items):
            known = {key: replace(SAME, host=entry.host) for key, entry in thing.known.items()}
            rest = None if thing.rest is None else replace(SAME, host=thing.rest.host)
            if in_place:
                thing.known, thing.rest = known, rest
            thing = thing if in_place else replace(thing, known=known, rest=rest)
        things.add(thing)
    return Value(things=frozenset(things), host=value.host)


def may_differ(value: Value) -> bool:
    """Whether a value is another one on each rank, or holds what is."""
    return value.is_local or local_entries(value)


def local_entries(value: Value) -> bool:
    """Whether something differs between the ranks that is in a list or dict, or that is run over: `zip(a, b)`."""
    parts = (
        thing.all() if isinstance(thing, Items) else thing.inner
        for thing in value.things
        if isinstance(thing, Items | Iteration)
    )
    return any(entry.is_local or local_entries(entry) for part in parts for entry in part if entry is not value)


def is_mixed(value: Value) -> bool:
    """Whether a dict that is brought together has entries that are the same on all ranks: `{"epoch": 3, "loss": …}`."""
    inner = [entry for thing in value.things if isinstance(thing, Items) for entry in thing.all()]
    return any(not entry.is_local and not local_entries(entry) and not entry.zero for entry in inner)


def own_keys(value: Value) -> dict[object, OwnEntry]:
    """The keys of a dict, each with whether its entry is a rank's own; None for those that are not known."""
    keys: dict[object, OwnEntry] = {}
    for thing in (each for each in value.things if isinstance(each, Items)):
        for key, entry in (*thing.known.items(), *([(None, thing.rest)] if thing.rest is not None else [])):
            merge_own(keys, {key: _own_entry(entry)})
    return keys


def merge_own(keys: dict[object, OwnEntry], others: Mapping[object, OwnEntry]) -> None:
    """Add what the entries of a dict are in another case."""
    for key, entry in others.items():
        keys[key] = entry if keys.get(key, entry) == entry else "at times"


def _own_entry(value: Value) -> OwnEntry:
    if not may_differ(value):
        return "never"
    return "always" if value.is_none is False and value.dimensions is not None else "at times"


def is_of_lists(value: Value) -> bool:
    """Whether it holds lists that grow, of which one may be longer than another: `curves = [[], []]`."""
    return any(
        isinstance(inner, Items) and inner.grows and any(map(local_entries, thing.all()))
        for thing in value.things
        if isinstance(thing, Items)
        for entry in thing.all()
        for inner in entry.things
    )


def is_tuple(value: Value) -> bool:
    """Whether it is a tuple in any case, which is shown otherwise than a list."""
    return bool(value.things) and all(isinstance(each, Items) and each.shape == "tuple" for each in value.things)


def holds_unsized(value: Value) -> bool:
    """Whether it is a list of arrays of no dimension, which torch takes for no numbers."""
    lists = [thing for thing in value.things if isinstance(thing, Items) and thing.shape == "list"]
    return any(entry.unsized for thing in lists for entry in thing.all())


def local_runs(value: Value) -> list[Value]:
    """What it runs over whose entries differ between the ranks: `counts.items()`."""
    found: list[Value] = []
    for each in (each for thing in value.only(Iteration) if isinstance(thing, Iteration) for each in thing.inner):
        runs = [] if each.is_local else local_runs(each)
        found += runs or ([each] if each.is_local or local_entries(each) else [])
    return found
