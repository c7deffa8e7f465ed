"""The numbers that tell a forward how to compute, by which it may turn to another way between two trials (M4, M7).

`model.epoch = epoch`, `self.warm = True`, `model(x, alpha)`, `args.mix = True`: attributes of the script's own classes,
arguments, and what outside_numbers.py finds. A division is tried again when they have values that it was not tried
with; so it is with lists of words, `model(x, ["mix"])`. A number that goes on changing is left out after some values,
if nothing is decided by it (trial/own_numbers.py, which looks at what a forward changes itself too).
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Hashable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

from torch import nn

from . import outside_numbers
from .libraries import is_installed

Attribute = tuple[dict[str, Any], str]
_Place = tuple[Mapping[str, Any] | None, str]

_VALUES = 16  # of one number, that are tried
_MOST = 64  # values of all together


@dataclass
class _OfForm:
    """What a form of input came with. last: the last time. seen: the values at each place. left_out: places. tried:
    values of all others."""

    last: list[Any] = field(default_factory=list)
    seen: defaultdict[Hashable, set[Any]] = field(default_factory=lambda: defaultdict(set))
    left_out: set[Hashable] = field(default_factory=set)
    tried: set[Hashable] = field(default_factory=set)


class Settings:
    """Which values were tried.

    The module holds this, so its attributes are not held here: None stands for them.

    Attributes:
        arguments: the places, among the leaves of the input, of numbers with too many values, of which the trial that
            is due has to see that they decide nothing.
    """

    def __init__(self) -> None:
        self.arguments: list[int] = []
        self._changing: list[_Place] = []  # attributes that are such numbers
        self._parts: Any = None
        self._is_own = False  # whether the module is of a class of the script's
        self._of: list[dict[str, Any]] = []  # attributes of each part
        self._count = 0  # of these, and of the module's
        self._outside: list[tuple[Mapping[str, Any], str]] = []  # numbers that the code names elsewhere
        self._places: list[_Place] = []
        self._own: set[Hashable] = set()  # those that the forward changes
        self._forms: defaultdict[Hashable, _OfForm] = defaultdict(_OfForm)
        self._before: tuple[_OfForm, dict[Hashable, Any]] | None = None  # a forward that is tried

    def are_new(self, form: Hashable, module: nn.Module, parts: Any, leaves: Sequence[Any]) -> bool:
        """Whether a form of input comes with numbers that it was not tried with; the next time it was.

        Args:
            module: and parts: the identities of what it consists of. leaves: the input, flattened.
        """
        self._changing, self.arguments = [], []
        if (self._parts is not parts and self._parts != parts) or self._counted(module) != self._count:
            self._look(module, parts)
        of_form, own = self._forms[form], vars(module)
        now = [(own if of is None else of).get(name) for of, name in self._places] + [*_told(leaves).values()]
        if now == of_form.last and of_form.tried:
            return False
        of_form.last = now
        values = {place: value for place, value in self._values(own, leaves).items() if place not in of_form.left_out}
        key = tuple(values.items())
        if key in of_form.tried or (len(of_form.tried) >= _MOST and not any(type(leaf) is list for leaf in leaves)):
            return False
        for place, value in values.items():
            of_form.seen[place].add(value)
        often = {place for place in values if len(of_form.seen[place]) > _VALUES}
        if many := {place for place in often if type(values[place]) is not tuple}:
            of_form.left_out |= many
            of_form.tried.clear()
            key = tuple(item for item in key if item[0] not in many)
            self.arguments = [place for place in many if isinstance(place, int)]
            self._changing = [(of, name) for of, name in self._places if (id(of), name) in many]
        of_form.tried.add(key)
        self._before = of_form, values
        return True

    def attributes(self, module: nn.Module) -> list[Attribute]:
        """Where the attributes are kept that have too many values; as `arguments`."""
        held = [(vars(module) if of is None else of, name) for of, name in self._changing]
        return [(of, name) for of, name in held if isinstance(of, dict)]

    def after_forward(self, module: nn.Module) -> None:
        """A number that the forward has changed itself is no setting."""
        if self._before is None:
            return
        (of_form, values), self._before = self._before, None
        now = self._values(vars(module), ())
        own = {place for place in values if type(values[place]) in (int, float) and place in now}
        own = {place for place in own if values[place] != now[place]}
        if own:
            self._own |= own
            self._places = [(of, name) for of, name in self._places if (id(of), name) not in own]
            of_form.tried = {tuple(item for item in values.items() if item[0] not in own | of_form.left_out)}

    def _look(self, module: nn.Module, parts: Any) -> None:
        own = [part for part in module.modules() if not is_installed(type(part).__module__.partition(".")[0])]
        if self._parts != parts:
            self._outside = outside_numbers.places(own)
            self._parts = parts
        self._is_own = any(part is module for part in own)
        self._of = [vars(part) for part in own if part is not module]
        self._count = self._counted(module)
        self._places = [place for place in self._outside if (id(place[0]), place[1]) not in self._own]
        kept: list[tuple[dict[str, Any] | None, dict[str, Any]]] = [(None, vars(module))] if self._is_own else []
        self._places += [
            (of, name)
            for of, held in kept + [(each, each) for each in self._of]
            for name, value in held.items()
            if type(value) in outside_numbers.KINDS and name != "training" and (id(of), name) not in self._own
        ]

    def _counted(self, module: nn.Module) -> int:
        return sum(map(len, self._of), len(vars(module)) if self._is_own else 0)

    def _values(self, own: dict[str, Any], leaves: Sequence[Any]) -> dict[Hashable, Any]:
        """By place: attributes that the forward leaves alone, and arguments. own: the attributes of the module."""
        values: dict[Hashable, Any] = {
            (id(of), name): (own if of is None else of).get(name) for of, name in self._places
        }
        return values | _told(leaves)


def _told(leaves: Sequence[Any]) -> dict[Hashable, Any]:
    """The numbers among the leaves of an input, and the lists of words, by place."""
    kinds = int, float, list
    return {i: tuple(leaf) if type(leaf) is list else leaf for i, leaf in enumerate(leaves) if type(leaf) in kinds}
