"""Where a program knows of nn.DataParallel: the keys of its state_dict, itself, pickled, its class and attributes;
where it copies a model to several GPUs as that does."""

from __future__ import annotations

import ast
from collections.abc import Iterable
from dataclasses import replace

from ..data_parallel import FACE
from ..header import main_guard
from ..host_by_choice import truth_with_gpu
from ..parallel_names import SHOWS
from ..script import Script
from .frames import Frame
from .state import State
from .values import Module, Value, entries, root_of
from .without_parallel import is_without_parallel

_KEYED = frozenset({"state_dict", "load_state_dict"})
_COPIED = (
    "the model is copied to several GPUs of one process here, as nn.DataParallel does it, where each rank has one GPU, "
    "and calls the model itself"
)


class ParallelStates(State):
    """What checkpoints, and lines behind it, know of nn.DataParallel."""

    def in_parallel(self, model: Value, node: ast.Call, frame: Frame) -> Value:
        """What nn.DataParallel makes of a model."""
        modules = {thing for thing in model.only(Module) if isinstance(thing, Module)}
        self.found.in_parallel |= modules
        for module in modules:
            self.made_parallel.setdefault(module, {})[node] = frame.script
        return replace(model, in_parallel=True)

    def unless_without_parallel(self, value: Value, node: ast.expr, frame: Frame) -> Value:
        """A model that may be in nn.DataParallel, where the program's conditions say that it is not."""
        modules = [thing for thing in value.only(Module) if isinstance(thing, Module)]
        return replace(value, in_parallel=False) if self._is_without(modules, node, frame) else value

    def _is_without(self, modules: Iterable[Module], node: ast.expr, frame: Frame) -> bool:
        made = [(script, call) for each in modules for call, script in self.made_parallel.get(each, {}).items()]
        return is_without_parallel(frame.script, node, made)

    def copies_to_devices(self, model: Value, node: ast.Call, frame: Frame) -> None:
        """A model is copied by hand, `torch.nn.parallel.replicate(model, devices)`, to be called instead of it."""
        models = {root_of(each).made for each in model.only(Module) if isinstance(each, Module)} & self.trained
        if models:
            self.problem(frame, node, _COPIED)
        self.gradients = self.gradients.awaits(models)  # that is why no wrapper is seen to be called

    def asks_for_keys(self, name: str, owner: Value, node: ast.Call, frame: Frame) -> None:
        """A method is called, of a model or of what holds one: its keys have `module.` in them, or begin with it."""
        if name in SHOWS:
            self.shows_parts(owner, node, frame)
        if name not in _KEYED:
            return
        held = {part for part in self.found.in_parallel if not owner.things.isdisjoint(_holders(part))}
        if owner.in_parallel:
            self.found.parallel_keys[node] = (frame.script, True)
        elif held and not self._is_without(held, node.func, frame):
            self.found.parallel_keys.setdefault(node, (frame.script, False))

    def asks_for_parallel(self, name: str, owner: Value, node: ast.expr, frame: Frame) -> None:
        """Its class is asked for, or an attribute that a model without nn.DataParallel does not have."""
        own = (self._has_own(each, name) for each in owner.only(Module) if isinstance(each, Module))
        if name == "_modules":
            self.shows_parts(owner, node, frame)
        if owner.in_parallel and (name in ("isinstance", "type") or name in FACE) and not any(own):
            self.found.parallel_asked[node] = frame.script

    def shows_parts(self, owner: Value, node: ast.expr, frame: Frame) -> None:
        """A model is asked for its parts or their names, where it is in nn.DataParallel on one GPU, too."""
        modules = (thing for thing in owner.only(Module) if isinstance(thing, Module))
        made = (each for module in modules for each in self.made_parallel.get(module, {}).items())
        if owner.in_parallel and any(not _is_by_choice(script, call) for call, script in made):
            self.found.parallel_parts[node] = frame.script

    def _has_own(self, module: Module, name: str) -> bool:
        method = self.method_of(module.cls, name, None) if module.cls is not None else None
        return name in module.attributes or method is not None

    def pickles(self, name: str, given: Iterable[Value], node: ast.Call, frame: Frame) -> None:
        """A library is called, which may write what it is given."""
        if name in ("torch.save", "pickle.dump") and any(each.in_parallel for each in entries(given)):
            self.found.parallel_pickles[node] = frame.script


def _is_by_choice(script: Script, call: ast.Call) -> bool:
    """Whether a condition other than whether there is a GPU decides about a call: `if torch.cuda.device_count() > 1:`.

    On one GPU the script has its model without nn.DataParallel then, and what follows means that.
    """
    around = (each for each in script.ancestors(call) if isinstance(each, ast.If | ast.IfExp))
    guard = main_guard(script.tree)
    return any(each is not guard and not truth_with_gpu(script, each.test) for each in around)


def _holders(part: Module) -> Iterable[Module]:
    """The modules that a module is a part of."""
    while part.parent is not None:
        part = part.parent
        yield part
