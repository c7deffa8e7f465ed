"""Which backward passes have left gradients in a model, and whether DistributedDataParallel averages the next ones."""

from __future__ import annotations

import ast
from collections.abc import Collection, Iterable, Mapping
from dataclasses import dataclass, field, replace

# What a model is known by: the call that makes it.
Made = ast.AST


@dataclass(eq=False)
class Forms:
    """What a model was given before it was trained: devices, as they are written, and types."""

    places: set[str] = field(default_factory=set)
    types: set[str] = field(default_factory=set)


@dataclass(frozen=True)
class Gradients:
    """The gradients of all models at one point of a program.

    left: of each model, the backward passes whose gradients it holds. awaited: the models whose wrapper has been called
    since it averaged gradients: it averages those of the next backward pass, and of no other one (L10). frozen: the
    models whose parameters get no gradients; None for one of which that is so in one case and not in another. moved:
    the models that were given another device or type since their wrapper was made, and by which calls.
    """

    left: Mapping[Made, frozenset[ast.Call]] = field(default_factory=dict)
    awaited: frozenset[Made] = frozenset()
    frozen: Mapping[Made, bool | None] = field(default_factory=dict)
    moved: frozenset[tuple[Made, ast.Call]] = frozenset()

    def awaits(self, models: Iterable[Made]) -> Gradients:
        """After their wrappers have been called, or where nothing is to be said of the next backward pass: the run has
        ended, or something else is refused."""
        return replace(self, awaited=self.awaited.union(models))

    def passed(self, model: Made, backward: ast.Call) -> Gradients:
        """After a backward pass has gone through it."""
        left = {**self.left, model: self.left.get(model, frozenset()) | {backward}}
        return replace(self, left=left, awaited=self.awaited - {model})

    def without_turns(self, after: Gradients) -> Gradients:
        """After a loop that went no turn: what only its turns call, nothing behind it is made by."""
        return replace(self, awaited=self.awaited | after.awaited)

    def zeroed(self, models: Iterable[Made]) -> Gradients:
        """After the gradients of models were set to zero."""
        return replace(self, left={**self.left, **dict.fromkeys(models, frozenset[ast.Call]())})

    def moves(self, model: Made, node: ast.Call) -> Gradients:
        """After a call has given a model another device, or its numbers another type."""
        return self.also_moved([(model, node)])

    def also_moved(self, others: Iterable[tuple[Made, ast.Call]]) -> Gradients:
        """After another way, too, by which models were moved."""
        return replace(self, moved=self.moved.union(others))

    def without_moves(self, models: Collection[Made] | None = None) -> Gradients:
        """After wrappers of models were made anew, or where a way ends; models: None for all."""
        return replace(
            self, moved=frozenset(each for each in self.moved if models is not None and each[0] not in models)
        )

    def froze(self, models: Iterable[Made], frozen: bool) -> Gradients:
        """After all parameters of models were frozen, or unfrozen."""
        return replace(self, frozen={**self.frozen, **dict.fromkeys(models, frozen)})

    def or_else(self, other: Gradients) -> Gradients:
        """After one of two ways was taken."""
        if self is other:
            return self
        models = {*self.left, *other.left}
        either = {each: self.left.get(each, frozenset()) | other.left.get(each, frozenset()) for each in models}
        frozen: dict[Made, bool | None] = {}
        for each in {*self.frozen, *other.frozen}:
            one, two = self.frozen.get(each, False), other.frozen.get(each, False)
            frozen[each] = one if one == two else None
        return Gradients(either, self.awaited & other.awaited, frozen, self.moved | other.moved)
