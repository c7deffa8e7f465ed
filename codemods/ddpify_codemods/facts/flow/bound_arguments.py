"""What functools.partial makes of a function or a class, and what a call gives by `**settings`."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from functools import reduce

from .held_values import local_entries, may_differ
from .operation_names import EACH, LOSS_CLASSES, MIX_LAST
from .values import SAME, Bound, Class, Function, Instance, Items, Library, Module, Thing, Value, join, made_of, of

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


@dataclass(frozen=True)
class Spread:
    """What `**values` gives. known: by name; perhaps: those of these names that it may lack; unseen: what it may give
    under any other name, the same on all ranks where all of it is; all_known: whether it has no other names."""

    known: dict[str, Value]
    perhaps: frozenset[str] = frozenset()
    unseen: Value = SAME
    all_known: bool = True


def spread_out(value: Value | None) -> Spread:
    """What `**value` gives, which may be one of several dicts."""
    if value is None:
        return Spread({})
    dicts = sorted((thing for thing in value.things if isinstance(thing, Items)), key=_in_order)
    rests = [thing.rest for thing in dicts if thing.rest is not None]
    others = len(dicts) < len(value.things) or not dicts or value.is_local
    known: dict[str, Value] = {}
    perhaps: set[str] = set()
    for name in dict.fromkeys(str(key) for thing in dicts for key in thing.known):
        given = [{str(key): each for key, each in thing.known.items()}.get(name, thing.rest) for thing in dicts]
        known[name] = _joined([each for each in given if each is not None])
        if others or any(name not in map(str, thing.known) for thing in dicts):
            perhaps.add(name)
    if value.is_local or (len(dicts) < len(value.things) and local_entries(value)):
        rests.append(made_of("unknown", [value], reason="which names it is given by `**` is not seen"))
    return Spread(known, frozenset(perhaps), _joined(rests), not others and not rests)


def by_keyword(pairs: Sequence[tuple[str | None, Value]]) -> dict[str, Value]:
    """What a call gives by name, and by one or several `**values`, which have no name in common."""
    spreads = [value for name, value in pairs if name is None]
    found = {name: value for name, value in pairs if name is not None}
    if len(spreads) > 1:
        found["**"] = _in_turn(spreads)
    elif spreads:
        found["**"] = spreads[0]
    return found


def given_later(before: Mapping[str, Value], then: Mapping[str, Value]) -> dict[str, Value]:
    """What a function gets by name that partial has made: what it is called with comes before what it was made with."""
    later = spread_out(then.get("**"))
    found = {name: value for name, value in before.items() if name not in later.known or name in later.perhaps}
    if may_differ(later.unseen):
        found |= {name: join(value, later.unseen) for name, value in found.items() if name != "**"}
    found |= {name: join(before[name], later.known[name]) for name in later.perhaps if name in before}
    found |= then
    if "**" in before and "**" in then:
        found["**"] = _in_turn([before["**"], then["**"]])
    return found


def _in_turn(values: Sequence[Value]) -> Value:
    """A dict that gives what several give, the later ones for the earlier."""
    known: dict[object, Value] = {}
    rest: Value | None = None
    for spread in map(spread_out, values):
        if may_differ(spread.unseen):
            known = {name: join(value, spread.unseen) for name, value in known.items()}
        known |= {
            name: join(known.get(name, SAME), value) if name in spread.perhaps else value
            for name, value in spread.known.items()
        }
        if not spread.all_known:
            rest = spread.unseen if rest is None else join(rest, spread.unseen)
    return of(Items("dict", known, rest))


def _joined(values: Sequence[Value]) -> Value:
    """What is one of some values."""
    return reduce(join, values) if values else SAME


def _in_order(items: Items) -> list[tuple[str, str, str]]:
    """By what dicts are put in an order that is the same in each run."""
    return [(str(key), each.kind, each.reason) for key, each in items.known.items()]


def _is_for_each(name: str) -> bool:
    """Whether a function or a layer of torch leaves samples apart."""
    last = name.rpartition(".")[2].lower()
    return name.startswith("torch.") and (last in EACH or any(part in last for part in (*MIX_LAST, "batchnorm")))
