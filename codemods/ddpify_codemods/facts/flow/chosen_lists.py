"""Lists, dicts and sets of which a rank's samples choose the one that is changed: `by_class[y[i].item()].append(x)`."""

from __future__ import annotations

import ast
from collections.abc import Sequence

from .frames import Frame
from .operations import element
from .state import State
from .values import KEYED, Function, Items, Value, made_of

_CHANGES = frozenset({"append", "appendleft", "extend", "insert", "add", "update", "setdefault", "pop", "remove"})


class ChosenLists(State):
    """What a list of lists holds of which one was changed."""

    def changes_chosen(self, name: str, node: ast.Call, args: Sequence[Value], frame: Frame) -> None:
        """A method changes one of several lists: what each of them holds, and how much, is then a rank's own."""
        owner = node.func.value if isinstance(node.func, ast.Attribute) and name in _CHANGES else None
        while isinstance(owner, ast.Subscript) and not self.in_forward:
            chosen = self.place_taken(owner.slice, frame)
            if chosen.kind == "unknown":
                _may_be_any(self.value(owner.value, frame), [chosen, *args])
            owner = owner.value

    def gives_chosen(self, node: ast.Subscript, lists: Value, chosen: Value, frame: Frame) -> None:
        """One of several lists gets another name, or is given to a function, which may change it."""
        parent = frame.script.parents[node]
        named = isinstance(parent, ast.Assign | ast.AnnAssign | ast.NamedExpr) and parent.value is node
        given = isinstance(parent, ast.Call) and bool(self.value(parent.func, frame).only(Function))
        if (named or given) and not self.in_forward:
            _may_be_any(lists, [chosen])


def _may_be_any(held: Value, given: Sequence[Value]) -> None:
    """Each of several lists may be the one that gets something; of other things it is known otherwise."""
    if not (element(held, None).only(Items) or not element(held, None).things):
        return
    for thing in held.only(Items):
        assert isinstance(thing, Items)
        entry = made_of("unknown", given, reason=KEYED)
        thing.known = dict.fromkeys(thing.known, entry)
        thing.rest = entry
        thing.default = entry if thing.default is not None else None
