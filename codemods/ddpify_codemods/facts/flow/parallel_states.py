"""Where a program knows of nn.DataParallel: the keys of its state_dict, itself, pickled, its class and attributes;
where it copies a model to several GPUs as that does."""

from __future__ import annotations

import ast
from collections.abc import Iterable
from dataclasses import replace

from ..data_parallel import FACE
from .frames import Frame
from .state import State
from .values import Module, Value, entries, root_of

_KEYED = frozenset({"state_dict", "load_state_dict"})
_COPIED = (
    "the model is copied to several GPUs of one process here, as nn.DataParallel does it, where each rank has one GPU, "
    "and calls the model itself"
)


class ParallelStates(State):
    """What checkpoints, and lines behind it, know of nn.DataParallel."""

    def in_parallel(self, model: Value) -> Value:
        """What nn.DataParallel makes of a model."""
        self.found.in_parallel |= {thing for thing in model.only(Module) if isinstance(thing, Module)}
        return replace(model, in_parallel=True)

    def copies_to_devices(self, model: Value, node: ast.Call, frame: Frame) -> None:
        """A model is copied by hand, `torch.nn.parallel.replicate(model, devices)`, to be called instead of it."""
        models = {root_of(each).made for each in model.only(Module) if isinstance(each, Module)} & self.trained
        if models:
            self.problem(frame, node, _COPIED)
        self.gradients = self.gradients.awaits(models)  # that is why no wrapper is seen to be called

    def asks_for_keys(self, name: str, owner: Value, node: ast.Call, frame: Frame) -> None:
        """A method is called, of a model or of what holds one: its keys have `module.` in them, or begin with it."""
        if name not in _KEYED:
            return
        held = {holder for part in self.found.in_parallel for holder in _holders(part)}
        if owner.in_parallel:
            self.found.parallel_keys[node] = (frame.script, True)
        elif not held.isdisjoint(owner.things):
            self.found.parallel_keys.setdefault(node, (frame.script, False))

    def asks_for_parallel(self, name: str, owner: Value, node: ast.expr, frame: Frame) -> None:
        """Its class is asked for, or an attribute that a model without nn.DataParallel does not have."""
        own = (self._has_own(each, name) for each in owner.only(Module) if isinstance(each, Module))
        if owner.in_parallel and (name in ("isinstance", "type") or name in FACE) and not any(own):
            self.found.parallel_asked[node] = frame.script

    def _has_own(self, module: Module, name: str) -> bool:
        method = self.method_of(module.cls, name, None) if module.cls is not None else None
        return name in module.attributes or method is not None

    def pickles(self, name: str, given: Iterable[Value], node: ast.Call, frame: Frame) -> None:
        """A library is called, which may write what it is given."""
        if name in ("torch.save", "pickle.dump") and any(each.in_parallel for each in entries(given)):
            self.found.parallel_pickles[node] = frame.script


def _holders(part: Module) -> Iterable[Module]:
    """The modules that a module is a part of."""
    while part.parent is not None:
        part = part.parent
        yield part
