"""Forwards of layers that have been followed: with the same values, in the same loops, they are not followed again.

A model is called at several places, its layers in several ways, one in the other: following each call would take
exponentially long. What a forward notes on its way is noted once and for all.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import replace

from .state import Computed, State
from .values import Items, Module, Value, root_of


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
            result = follow()
            known = Computed(result, frozenset(self.always), frozenset(self.at_times))
            self.always, self.at_times = always, at_times
            if changes == self.attributes_set:
                self.computed[key] = replace(known, result=_fresh(result))
        self.always |= known.always
        self.at_times |= known.at_times
        return _fresh(known.result)


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
