"""Numbers that change from call to call, such as a count that the forward keeps, and whether it decides by them.

`if self.steps > 1000: h = h - h.mean(0)`: what a trial has seen says nothing of the calls after that (M4). A forward
that compares such a number, or takes it for true or false, is not divided as a whole.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from typing import Any

import torch
from torch import Tensor, nn

from ..torch_internals import BUFFERS
from .reads import DECIDES_BY_COUNTER, refuse

Place = tuple[Any, Any]  # a dict or a list, and a key or an index

_COMPARISONS = ("__lt__", "__le__", "__gt__", "__ge__", "__eq__", "__ne__", "__bool__")
_INTO = 100  # a container with more entries holds samples or words, not counts
_DEPTH = 2
_ARITHMETIC = ("add", "sub", "mul", "truediv", "floordiv", "mod", "pow", "neg", "abs")


def changed(before: nn.Module, after: nn.Module, copy: nn.Module) -> list[Place]:
    """Where a copy of a module keeps the numbers that a forward changes; those of torch's own classes decide nothing.

    Args:
        before: the module. after: a copy of it, after a forward. copy: another copy.
    """
    places: list[Place] = []
    for one, other, part in zip(before.modules(), after.modules(), copy.modules(), strict=False):
        if type(one).__module__.startswith("torch."):
            continue
        places += _changed(vars(one), vars(other), vars(part), _DEPTH)
        for name, value in vars(one)[BUFFERS].items():
            if isinstance(value, Tensor) and value.numel() == 1 and not _equal(value, vars(other)[BUFFERS].get(name)):
                places.append((vars(part)[BUFFERS], name))
    return [(of, name) for of, name in places if not isinstance(of, dict) or name in of]


def _changed(one: Any, other: Any, part: Any, depth: int) -> Iterator[Place]:
    """The numbers in attributes, and in dicts, lists and objects that these hold: `self.state["steps"] += 1`."""
    for key, value in one.items() if isinstance(one, dict) else enumerate(one):
        if isinstance(one, dict):
            theirs, ours = other.get(key), part.get(key)
        else:
            theirs, ours = (each[key] if key < len(each) else None for each in (other, part))
        if type(value) in _WATCHED:
            if value != theirs and type(ours) is type(value):
                yield part, key
        elif depth and type(value) is type(theirs) is type(ours):
            inner = [_held(each) for each in (value, theirs, ours)]
            if all(0 < len(each) <= _INTO for each in inner):
                yield from _changed(inner[0], inner[1], inner[2], depth - 1)


def _held(value: Any) -> Any:
    """What holds the values of a dict, a list or an object of the script's own; nothing for what is of torch."""
    if type(value) in (dict, list):
        return value
    is_other = isinstance(value, (Tensor, nn.Module, type)) or type(value).__module__.startswith("torch.")
    return {} if is_other else getattr(value, "__dict__", {})


def _equal(one: Tensor, other: Any) -> bool:
    return isinstance(other, Tensor) and one.shape == other.shape and torch.equal(one, other)


def tensors(places: Sequence[Place]) -> list[Tensor]:
    """The tensors among some numbers."""
    return [of[name] for of, name in places if isinstance(of[name], Tensor)]


@contextmanager
def watched(places: Sequence[Place]) -> Iterator[None]:
    """Raise ReadsSamples where one of some numbers is compared."""
    for of, name in places:
        of[name] = watched_number(of[name])
    try:
        yield
    finally:
        for of in {id(of): of for of, _ in places}.values():
            for name, value in [*(of.items() if isinstance(of, dict) else enumerate(of))]:
                if type(value) in _WATCHED.values():
                    of[name] = type(value).__base__(value)  # type: ignore[misc]


def watched_number(value: Any) -> Any:
    """The same number; ReadsSamples is raised where it is compared."""
    kind = _WATCHED.get(type(value))
    return value if kind is None else kind(value)


def _made(kind: type) -> type:
    """A number of some kind that may be computed with, but not compared."""
    methods: dict[str, Any] = {name: _compared(getattr(kind, name)) for name in _COMPARISONS}
    methods |= {"__hash__": kind.__hash__, "__deepcopy__": lambda self, memo: self}
    for name in _ARITHMETIC:
        for method in (f"__{name}__", f"__r{name}__"):
            if hasattr(kind, method):
                methods[method] = _computed(getattr(kind, method))
    return type(f"Watched{kind.__name__}", (kind,), methods)


def _compared(plain: Callable[..., Any]) -> Callable[..., Any]:
    def compare(*numbers: Any) -> Any:
        refuse(DECIDES_BY_COUNTER)
        return plain(*numbers)

    return compare


def _computed(plain: Callable[..., Any]) -> Callable[..., Any]:
    return lambda *numbers: watched_number(plain(*numbers))


_WATCHED = {kind: _made(kind) for kind in (int, float)}
