"""What functools.partial makes of a function or a class, and what a call gives by `**settings`."""

from __future__ import annotations

from collections.abc import Mapping, Sequence

from .frames import local_entries
from .operation_names import EACH, LOSS_CLASSES, MIX_LAST
from .values import SAME, Bound, Class, Function, Instance, Items, Library, Module, Thing, Value, join, made_of

_DIMENSIONS = frozenset({"dim", "dims", "axis"})


def bound(args: Sequence[Value], keywords: Mapping[str, Value]) -> Value | None:
    """The function that `partial(function, *args, **keywords)` is; None where it is not known what it does.

    Of torch's functions and layers those are followed that do the same for each sample, whatever else they are given.
    """
    function, *first = args
    names = [thing.name for thing in function.things if isinstance(thing, Library)]
    known = bool(names) and len(names) == len(function.things) and all(map(_is_for_each, names))
    if known and not first and keywords.keys().isdisjoint(_DIMENSIONS):
        return function
    if not function.things or not all(map(_can_be_bound, function.things)):
        return None
    return Value(things=frozenset(_bound(thing, first, keywords) for thing in function.things))


def _bound(thing: Thing, first: Sequence[Value], keywords: Mapping[str, Value]) -> Bound:
    if isinstance(thing, Bound):
        return Bound(thing.thing, (*thing.args, *first), tuple((dict(thing.keywords) | dict(keywords)).items()))
    return Bound(thing, tuple(first), tuple(keywords.items()))


def _can_be_bound(thing: Thing) -> bool:
    if isinstance(thing, Library):
        return is_layer(thing) or (
            thing.name.startswith(("torch.", "numpy.")) and thing.name.rpartition(".")[2].islower()
        )
    return isinstance(thing, Function | Class | Instance | Bound) or (
        isinstance(thing, Module) and thing.cls is not None
    )


def is_layer(thing: Library) -> bool:
    """Whether it is a class of torch that makes a layer, which is not a loss."""
    last = thing.name.rpartition(".")[2]
    return thing.name.startswith("torch.nn.") and last[:1].isupper() and last not in LOSS_CLASSES


def spread_out(value: Value | None) -> tuple[dict[str, Value], bool]:
    """What `**value` gives by name, and whether that is all that it gives."""
    if value is None:
        return {}, True
    known: dict[str, Value] = {}
    dicts = [thing for thing in value.things if isinstance(thing, Items)]
    all_known = len(dicts) == len(value.things) == 1
    for thing in dicts:
        inner, is_known = spread_out(thing.known.get("**"))
        known |= {str(key): each for key, each in thing.known.items() if key != "**"} | inner
        all_known = all_known and is_known and thing.rest is None
    return known, all_known


def spread_unseen(value: Value | None) -> Value:
    """What `**value` may give under a name that it is not seen to have: the same on all ranks where all of it is."""
    if value is None:
        return SAME
    dicts = [thing for thing in value.things if isinstance(thing, Items)]
    found = [each for thing in dicts for each in (thing.rest, spread_unseen(thing.known.get("**"))) if each is not None]
    if value.is_local or (len(dicts) < len(value.things) and local_entries(value)):
        found.append(made_of("unknown", [value], reason="which names it is given by `**` is not seen"))
    result = found[0] if found else SAME
    for each in found[1:]:
        result = join(result, each)
    return result


def _is_for_each(name: str) -> bool:
    """Whether a function or a layer of torch leaves samples apart."""
    last = name.rpartition(".")[2].lower()
    return name.startswith("torch.") and (last in EACH or any(part in last for part in (*MIX_LAST, "batchnorm")))
