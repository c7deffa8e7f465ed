"""Lists, dicts and sets of which a rank's samples choose the one that is changed: `by_class[y[i].item()].append(x)`."""

from __future__ import annotations

import ast
from collections.abc import Sequence

from .frames import Frame
from .operations import element
from .state import State
from .values import KEYED, SAME, Items, Value, made_of

_CHANGES = frozenset({"append", "appendleft", "extend", "insert", "add", "update", "setdefault", "pop", "remove"})


class ChosenLists(State):
    """What a list of lists holds of which one was changed."""

    def changes_chosen(self, name: str, node: ast.Call, args: Sequence[Value], frame: Frame) -> None:
        """A method changes one of several lists: what each of them holds, and how much, is then a rank's own."""
        owner = node.func.value if isinstance(node.func, ast.Attribute) and name in _CHANGES else None
        while isinstance(owner, ast.Subscript) and not self.in_forward:
            chosen = self.place_taken(owner.slice, frame)
            held = self.value(owner.value, frame) if chosen.kind == "unknown" else SAME
            of_lists = held.only(Items) and (element(held, None).only(Items) or not element(held, None).things)
            for thing in held.only(Items) if of_lists else ():
                assert isinstance(thing, Items)
                entry = made_of("unknown", [chosen, *args], reason=KEYED)
                thing.known = dict.fromkeys(thing.known, entry)
                thing.rest = entry
                thing.default = entry if thing.default is not None else None
            owner = owner.value
