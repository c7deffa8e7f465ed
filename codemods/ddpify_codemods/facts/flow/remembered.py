"""Forwards of layers that have been followed: with the same values, in the same loops, they are not followed again.

A model is called at several places, its layers in several ways, one in the other: following each call would take
exponentially long. What a forward notes on its way is noted once and for all. One that sets attributes to values which
they had before, where all ranks have the same (`self.weight = self.bar / sigma`), leaves them as they were.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import replace

from .state import Computed, State
from .values import Items, Module, Thing, Value, root_of

_NOTED = frozenset({"__class__", "__dict__", "requires_grad", "training"})  # whatever the value is


class Remembered(State):
    """What is not followed twice."""

    def once(
        self, module: Module, args: Sequence[Value], keywords: Mapping[str, Value], follow: Callable[[], Value | None]
    ) -> Value | None:
        """What the forward of a layer gives back, which `follow` finds out."""
        if not self.in_forward or any(value.only(Items) for value in (*args, *keywords.values())):
            return follow()  # what lists hold may have been changed
        situation = (
            tuple((context.node, context.how, context.loaders) for context in self.contexts),
            self.without_gradients - self.quiet_around,
            self.undecided > 0,
            self.own_ways > 0,
            tuple(root_of(each).evaluates for each in (module, self.in_forward[0])),
            frozenset(self.began & self.drawn),
            self.attributes_set,
        )
        key = (module, tuple(args), tuple(keywords.items()), situation)
        known = self.computed.get(key)
        if known is None:
            always, at_times, changes = self.always, self.at_times, self.attributes_set
            self.always, self.at_times = set(), set()
            before, self.values_before = self.values_before, {}
            noted = self.sets_noted
            result = follow()
            if noted == self.sets_noted and all(_has(*each, value) for each, value in self.values_before.items()):
                self.attributes_set = changes
            self.values_before |= before
            known = Computed(result, frozenset(self.always), frozenset(self.at_times))
            self.always, self.at_times = always, at_times
            if changes == self.attributes_set:
                self.computed[key] = replace(known, result=_fresh(result))
        self.always |= known.always
        self.at_times |= known.at_times
        return _fresh(known.result)

    def attribute_set(self, thing: Thing, name: str, old: Value | None, new: Value) -> None:
        """An attribute of a network or of an object gets a value."""
        of_model = isinstance(thing, Module) and bool(self.in_forward)
        is_noted = new.is_local or new.things or name in _NOTED or not of_model
        if (new == old and not (of_model and is_noted)) or (old is None and not of_model):
            return
        self.attributes_set = next(self.versions)
        if is_noted:
            self.sets_noted += 1
        else:
            self.values_before.setdefault((thing, name), old)


def _has(thing: Thing, name: str, value: Value | None) -> bool:
    """Whether an attribute has a value."""
    return isinstance(thing, Module) and thing.attributes.get(name) == value


def _fresh(value: Value | None) -> Value | None:
    """A value whose lists and dicts nobody else changes."""
    return None if value is None else _copied(value)


def _copied(value: Value) -> Value:
    things = {
        replace(each, known={key: _copied(one) for key, one in each.known.items()}, rest=_fresh(each.rest))
        if isinstance(each, Items)
        else each
        for each in value.things
    }
    return replace(value, things=frozenset(things)) if value.things else value
