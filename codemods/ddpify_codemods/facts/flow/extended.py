"""Lists to which each rank adds entries for samples or batches of its own, so that they are not equally long."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace

from .layout import axis
from .values import LOCAL_ROWS, Items, Iteration, Loader, Thing, Value, entries, made_of


def zipped_rows(args: Sequence[Value]) -> Value | None:
    """`list(zip(labels.tolist(), guesses.tolist()))`: an entry for each sample, in their order; None for others."""
    things = args[0].things if len(args) == 1 else frozenset()
    [run] = things if len(things) == 1 else [None]
    if not isinstance(run, Iteration) or run.how != "zip":
        return None
    rows = all(each.kind in ("batch", "rows") and not each.things and not each.merged for each in run.inner)
    return replace(made_of("rows", run.inner, host=True), dimensions=None) if rows else None


def of_samples(value: Value) -> Value | None:
    """What a list holds that has a number for each sample, one after the other: `preds.extend(out.tolist())`.

    It may be one of several such lists, as each turn of a loop may begin another one.
    """
    lists = [_numbers_of_samples(thing) for thing in value.things]
    rests = [each for each in lists if each is not None]
    return made_of("rows", rests, host=True) if rests and len(rests) == len(lists) else None


def _numbers_of_samples(thing: Thing) -> Value | None:
    if not isinstance(thing, Items) or thing.shape != "list" or thing.known or not (thing.rest and thing.in_order):
        return None
    rest = thing.rest
    plain = rest.kind in ("batch", "rows") and not (rest.part or rest.things or rest.reason)
    return rest if plain and thing.extended and not thing.by_sample else None


def lengthening(value: Value) -> frozenset[Loader]:
    """The loaders whose samples decide how many entries a list gets by `list.extend(value)`."""
    if value.kind == "unknown" or (value.kind in LOCAL_ROWS and axis(value.kind) == 0):
        return value.loaders
    found: frozenset[Loader] = frozenset()
    for thing in value.things:
        if isinstance(thing, Items):
            by_sample = thing.by_sample or thing.may_be_by_sample
            found |= thing.lengthened.union(*(each.loaders for each in entries(thing.all()) if by_sample))
        elif isinstance(thing, Iteration):
            found = found.union(*map(lengthening, thing.inner))
    return found


def lengthen(owner: Value, loaders: frozenset[Loader]) -> None:
    """Note that a list, dict or set gets entries by the samples of loaders."""
    for thing in owner.only(Items):
        assert isinstance(thing, Items)
        thing.lengthened |= loaders
