"""Follows methods of values that the program does not define."""

from __future__ import annotations

import ast

from .frames import Frame, local_entries
from .libraries import Libraries
from .operations import on_number, on_rows
from .values import (
    ADDITIVE,
    LOCAL_ROWS,
    SAME,
    Items,
    Iteration,
    Loader,
    Method,
    Module,
    Optimizer,
    Parameters,
    Value,
    join,
    made_of,
    of,
    root_of,
)

_SHOWN = frozenset(
    {"set_postfix", "set_description", "set_postfix_str", "set_description_str", "update", "refresh", "close"}
)

_MODULE_SELF = frozenset(
    {"to", "cuda", "cpu", "train", "eval", "float", "double", "half", "apply", "requires_grad_", "share_memory"}
)

_PARAMETERS = frozenset({"parameters", "named_parameters"})

_LIST_METHODS = frozenset({"append", "add", "extend", "insert", "appendleft"})


class Methods(Libraries):
    """What methods of tensors, lists and modules make."""

    def method(
        self, method: Method, node: ast.Call, args: list[Value], keywords: dict[str, Value], frame: Frame, alone: bool
    ) -> Value:
        owner, name = method.owner, method.name
        given = [*args, *keywords.values()]
        local = [value for value in given if value.is_local or local_entries(value)]
        for thing in owner.things:
            found = self.of_thing(thing, owner, name, node, args, given, frame, alone)
            if found is not None:
                return found
        if owner.kind in ADDITIVE and name.endswith("_") and not name.endswith("__") and name != "requires_grad_":
            self.problem(frame, node, f".{name}() changes a number of this rank in place", owner.loaders)
        if owner.kind in LOCAL_ROWS:
            words = {word.arg or "" for word in node.keywords}
            if name == "item":
                return made_of("rows", [owner], host=True) if self.in_rows() else made_of("unknown", [owner])
            if name == "size":
                return self.size(owner, node, frame)
            if name in ("items", "values", "keys"):
                return of(Iteration("pairs" if name == "items" else "as_is", (owner,)))
            found = on_rows(name, owner, self.dimension(node, 0, frame), given, words)
            return found or made_of(
                "unknown", [owner, *given], reason=f"what .{name}() makes of a batch depends on which samples are in it"
            )
        if owner.kind in ("mean", "sum", "size"):
            found = on_number(name, owner, given)
            return found or made_of("unknown", [owner, *given], reason=f".{name}() of it cannot be added up over ranks")
        if owner.is_local:
            return made_of("unknown", [owner, *given])
        if owner.zero and name in ("to", "cuda", "cpu", "clone", "double", "float", "long"):
            return owner
        if local and name in ("scale",) and len(args) == 1:
            return args[0]
        if local and name == "format":
            self.shown(node, frame)
            return SAME
        if local and name in _SHOWN | {"write"} and self.is_bar(owner):
            return SAME
        if local:
            return self.unknown_call(node, given, frame, alone)
        if not alone and not owner.things:
            return SAME
        return of(Module(node, "", networks=True)) if not alone and not owner.zero else SAME

    def is_bar(self, owner: Value) -> bool:
        return any(isinstance(thing, Iteration) and thing.how == "bar" for thing in owner.things)

    def of_thing(
        self,
        thing: object,
        owner: Value,
        name: str,
        node: ast.Call,
        args: list[Value],
        given: list[Value],
        frame: Frame,
        alone: bool,
    ) -> Value | None:
        """A method of something that is known; None for others."""
        if isinstance(thing, Module):
            if name == "requires_grad_":
                self.freezes(owner, node)
            if name in ("train", "eval"):
                on = args[0].constant if args else name == "train"
                root_of(thing).evaluates = on is False
            if name in _MODULE_SELF:
                return owner
            if name in _PARAMETERS:
                return of(Parameters((thing,)))
            if name in ("children", "modules", "named_children", "named_modules"):
                return SAME
            if not any(value.is_local or local_entries(value) for value in given):
                return SAME
        if isinstance(thing, Items):
            if name in _LIST_METHODS and args:
                for value in args[-1:]:
                    entries = value.only(Items) if name == "extend" else []
                    inner = [each for one in entries if isinstance(one, Items) for each in one.all()]
                    for each in inner or [value]:
                        self.append(owner, each)
                return SAME
            if name in ("items", "values", "keys"):
                return of(
                    Iteration("pairs" if name == "items" else "entries" if name == "values" else "keys", (owner,))
                )
            if name in ("get", "setdefault", "pop"):
                return self.part(owner, args[0].constant if args else None)
            if name == "update" and any(value.is_local or local_entries(value) for value in given):
                self.append(
                    owner, made_of("unknown", [v for v in given if v.is_local] or [SAME], reason=".update() of it")
                )
                return SAME
        if isinstance(thing, Parameters) and name == "requires_grad_":
            self.freezes(owner, node)
        elif isinstance(thing, Parameters) and name.endswith("_"):
            for argument, value in zip(node.args, args, strict=False):
                self.demand(argument, value, frame)
        if isinstance(thing, Loader | Parameters | Optimizer):
            return SAME if isinstance(thing, Loader) else owner if isinstance(thing, Parameters) else SAME
        if isinstance(thing, Iteration) and thing.how == "bar":
            return SAME
        return None

    def append(self, owner: Value, value: Value) -> None:
        """Put a value into a list, dict or set."""
        uneven = [context for context in self.contexts if self.uneven(context)]
        if uneven and not value.is_local and not local_entries(value):
            value = self.counted(uneven[0])
        for thing in owner.only(Items):
            assert isinstance(thing, Items)
            thing.rest = value if thing.rest is None else join(thing.rest, value)
            thing.grows = True

    def size(self, owner: Value, node: ast.Call, frame: Frame) -> Value:
        dimension = self.dimension(node, 0, frame)
        if not node.args and not node.keywords:
            return self.shape_of(owner)
        if owner.kind == "picked":
            return SAME
        return self.size_in(self.shape_of(owner), dimension)
