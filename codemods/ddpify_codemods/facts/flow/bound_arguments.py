"""What functools.partial makes of a function or a class."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import TypeGuard

from .frames import local_entries
from .operation_names import EACH, MIX_LAST
from .values import Bound, Class, Function, Library, Thing, Value, made_of


def bound(args: Sequence[Value], keywords: Mapping[str, Value]) -> Value | None:
    """The function that `partial(function, *args, **keywords)` is; None where it is not known what it does.

    Of torch's functions those are followed that do the same for each sample, whatever else they are given. Others may
    be given the dimension along which they work: nothing is known of what they make of samples.
    """
    function, *first = args
    local = [each for each in (*first, *keywords.values()) if each.is_local or local_entries(each)]
    if local:
        return made_of("unknown", local, reason="a function is given some of the arguments that a rank has of its own")
    names = [thing.name for thing in function.things if isinstance(thing, Library)]
    if names and not first and len(names) == len(function.things) and all(map(_is_for_each, names)):
        return function
    things = {thing for thing in function.things if isinstance(thing, Function | Class) or _is_function(thing)}
    if not things or len(things) < len(function.things):
        return None
    kept = tuple(first), tuple(keywords.items())
    return Value(things=frozenset(Bound(thing, *kept) for thing in things))


def _is_function(thing: Thing) -> TypeGuard[Library]:
    return (
        isinstance(thing, Library)
        and thing.name.startswith(("torch.", "numpy."))
        and thing.name.rpartition(".")[2].islower()
    )


def _is_for_each(name: str) -> bool:
    """Whether a function or a layer of torch leaves samples apart, whatever else it is given."""
    last = name.rpartition(".")[2].lower()
    return name.startswith("torch.") and (last in EACH or any(part in last for part in (*MIX_LAST, "batchnorm")))
