"""The numbers that tell a forward how to compute, by which it may turn to another way between two trials (M4, M7).

`model.epoch = epoch`, `self.warm = True`, `model(x, alpha)`: attributes of a module's own classes, and arguments. A
division is tried again when they have values that it was not tried with, for the first few; from then on they count for
a number that changes all the time. What a forward changes itself is looked at in the trial (trial/own_numbers.py).
"""

from __future__ import annotations

from collections.abc import Hashable, Sequence
from typing import Any

from torch import nn

_KINDS = (bool, int, float, str)
_MOST = 16  # values that are tried


class Settings:
    """Which values were tried."""

    def __init__(self) -> None:
        self._parts: Any = None
        self._of: list[dict[str, Any]] = []  # attributes of each part
        self._places: list[tuple[dict[str, Any], str]] = []
        self._count = 0  # of attributes
        self._own: set[tuple[int, str]] = set()  # those that the forward changes
        self._tried: dict[Hashable, set[Hashable]] = {}
        self._before: tuple[Hashable, tuple[Any, ...], list[Any]] | None = None  # a forward that is tried

    def are_new(self, form: Hashable, module: nn.Module, parts: Any, leaves: Sequence[Any]) -> bool:
        """Whether a form of input comes with numbers that it was not tried with; the next time it was.

        Args:
            module: and parts: the identities of what it consists of. leaves: the input, flattened.
        """
        if self._parts != parts or sum(map(len, self._of)) != self._count:
            self._look(module, parts)
        given, values = tuple(leaf for leaf in leaves if type(leaf) in (int, float)), self._values()
        tried = self._tried.setdefault(form, set())
        if (*values, *given) in tried or len(tried) >= _MOST:
            return False
        tried.add((*values, *given))
        self._before = form, given, values
        return True

    def after_forward(self) -> None:
        """A number that the forward has changed itself is no setting."""
        if self._before is None:
            return
        (form, given, values), self._before = self._before, None
        now = self._values()
        own = [
            type(before) in (int, float) and before != after for before, after in zip(values, now, strict=True)
        ]
        if any(own):
            self._own |= {(id(of), name) for (of, name), changed in zip(self._places, own, strict=True) if changed}
            self._places = [place for place, changed in zip(self._places, own, strict=True) if not changed]
            rest = [value for value, changed in zip(values, own, strict=True) if not changed]
            self._tried = {form: {(*rest, *given)}}

    def _look(self, module: nn.Module, parts: Any) -> None:
        self._parts = parts
        self._of = [vars(part) for part in module.modules() if not type(part).__module__.startswith("torch.")]
        self._count = sum(map(len, self._of))
        self._places = [
            (of, name)
            for of in self._of
            for name, value in of.items()
            if type(value) in _KINDS and name != "training" and (id(of), name) not in self._own
        ]

    def _values(self) -> list[Any]:
        return [of.get(name) for of, name in self._places]
