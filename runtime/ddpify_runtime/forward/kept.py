"""Whether modules are what they were: asked before every forward, in loops that run in C.

With a function call for each part that would take as long as the forward of a small model.
"""

from __future__ import annotations

from collections.abc import Sequence
from itertools import chain, repeat
from operator import attrgetter, contains, is_
from typing import Any
from weakref import ref

from torch import nn
from torch.utils.hooks import RemovableHandle

from ..torch_internals import HOOKS_AFTER_GRADIENT, HOOKS_BEFORE_GRADIENT, HOOKS_IN_MODULE, KEPT_IN_MODULE

_REQUIRES_GRAD, _DTYPE, _DEVICE = attrgetter("requires_grad"), attrgetter("dtype"), attrgetter("device")


class Kept:
    """What some modules and parameters were, to see before every forward if they still are.

    The first module is what the others are parts of, and holds this: neither it nor its `__dict__` is held here.
    """

    def __init__(self, modules: Sequence[nn.Module], parameters: Sequence[nn.Parameter]) -> None:
        """Raises KeyError or TypeError where a class keeps these elsewhere, as scripted modules do."""
        first, *others = modules
        self._first, self._others, self._found = ref(first), others, parameters
        self._of_others = [*map(vars, others)]
        attributes = [vars(first), *self._of_others]
        of_each = [*map(KEPT_IN_MODULE, attributes)]
        self._of_all = [*chain.from_iterable(of_each)]
        inside = [kept for each in of_each for kept in each[:2]]
        self._empty = [kept for kept in inside if not kept]
        self._filled = [kept for kept in inside if kept]
        self._sizes = [*map(len, self._filled)]
        self._values = [*chain.from_iterable(map(dict.values, self._filled))]
        self._types = [*map(type, modules)]
        self._has_forward = [*map(contains, attributes, repeat("forward"))]
        self._forward = vars(first).get("forward")
        self._forwards = [(kept, kept["forward"]) for kept in self._of_others if "forward" in kept]
        self._trained = [*map(_REQUIRES_GRAD, parameters)]
        self._dtypes, self._devices = [*map(_DTYPE, parameters)], [*map(_DEVICE, parameters)]
        self._turn = 0
        self._numbers, self._hooked = self._all_hooks(attributes)
        self._next_hook = RemovableHandle.next_id

    def is_same(self) -> bool:
        """Whether class, `forward`, mode, hooks, parameters and parts of the modules are the same, and all parameters.

        `is_leaf` is not asked: what is trained stays a leaf, and only what was not trained can become none.
        """
        first: Any = self._first()
        attributes = [vars(first), *self._of_others]
        try:
            of_all = chain.from_iterable(map(KEPT_IN_MODULE, attributes))
            if not all(map(is_, of_all, self._of_all)) or any(self._empty):
                return False
        except KeyError:
            return False
        return (
            [*map(len, self._filled)] == self._sizes
            and all(map(is_, chain.from_iterable(map(dict.values, self._filled)), self._values))
            and [*map(type, chain((first,), self._others))] == self._types
            and [*map(contains, attributes, repeat("forward"))] == self._has_forward
            and attributes[0].get("forward") is self._forward
            and all(kept["forward"] is forward for kept, forward in self._forwards)
            and [*map(_REQUIRES_GRAD, self._found)] == self._trained
            and all(map(is_, map(_DTYPE, self._found), self._dtypes))
            and self._is_there()
            and self._has_same_hooks(attributes)
        )

    def _is_there(self) -> bool:
        """Whether one parameter, another one each time, is where it was: what moves a module moves all of them.

        The gradient of one that was moved alone is averaged where it was until it is its turn.
        """
        if not self._found:
            return True
        self._turn = (self._turn + 1) % len(self._found)
        return bool(_DEVICE(self._found[self._turn]) == self._devices[self._turn])

    def _has_same_hooks(self, attributes: Sequence[dict[str, Any]]) -> bool:
        """Not asked where there are none and torch has set none anywhere since: each that it sets gets a number."""
        if not self._hooked and RemovableHandle.next_id == self._next_hook:
            return True
        if self._all_hooks(attributes) != (self._numbers, self._hooked):
            return False
        self._next_hook = RemovableHandle.next_id
        return True

    def _all_hooks(self, attributes: Sequence[dict[str, Any]]) -> tuple[list[list[Any]], list[Any]]:
        """The numbers of all hooks, and the dictionaries that have some."""
        of_modules = chain.from_iterable(map(HOOKS_IN_MODULE, attributes))
        of_parameters = chain(map(HOOKS_AFTER_GRADIENT, self._found), map(HOOKS_BEFORE_GRADIENT, self._found))
        hooked = [kept for kept in chain(of_modules, of_parameters) if kept]
        return [[*kept] for kept in hooked], hooked
