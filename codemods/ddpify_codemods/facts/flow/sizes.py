"""Some of the sizes of a tensor, `x.shape[:2]`, among which may be the number of its samples."""

from __future__ import annotations

import ast
from collections.abc import Sequence
from dataclasses import replace

from .batches import of_batches
from .values import PICKED, SAME, Items, Value, made_of, of

_PRODUCTS = frozenset({"math.prod", "numpy.prod", "numpy.product", "torch.prod"})


def sizes_taken(shape: Value, size: Value, part: ast.Slice, bounds: Sequence[Value | None]) -> Value:
    """What a slice takes of the sizes of a tensor.

    Args:
        shape: of the tensor; its constant is the dimension of the samples. size: their number.
        part: the slice. bounds: its lower and upper one, None where it has none.
    """
    at, known = shape.constant, shape.dimensions
    if not isinstance(at, int) or part.step is not None or (at < 0 and not known):
        return SAME
    at = at + known if at < 0 and known else at
    lower, upper = (None if each is None else _from_first(each.constant, known) for each in bounds)
    first = 0 if bounds[0] is None else lower
    if first is None or at < first or (upper is not None and at >= upper):
        return SAME
    number = None if upper is None else upper - first
    places: dict[object, Value] = dict.fromkeys(range(number or at - first), SAME)
    return of(Items("tuple", {**places, at - first: size}, None if number else SAME))


def is_sizes(value: Value) -> bool:
    """Whether a value is a tuple of sizes, one of them the number of samples."""
    things = [*value.things]
    if len(things) != 1 or not isinstance(things[0], Items) or things[0].shape != "tuple" or value.is_local:
        return False
    each_of = things[0].all()
    return any(each.kind == "size" for each in each_of) and all(each.kind == "size" or each == SAME for each in each_of)


def _from_first(bound: object, dimensions: int | None) -> int | None:
    """A bound, counted from the first dimension; None where that is not known."""
    if not isinstance(bound, int) or isinstance(bound, bool):
        return None
    if bound >= 0:
        return bound
    return None if dimensions is None else bound + dimensions


def product(name: str, given: Sequence[Value]) -> Value | None:
    """How many elements a tensor of some sizes has, `math.prod(x.shape[:2])`; None for others."""
    if len(given) == 1 and given[0].kind == "shape" and given[0].reason != PICKED and name in (*_PRODUCTS, "numel"):
        return of_batches(made_of("size", given, host=True), ())
    sizes = [each for value in given for thing in value.only(Items) if isinstance(thing, Items) for each in thing.all()]
    local = [each for each in sizes if each.is_local]
    if name not in ("numel", *_PRODUCTS) or len(given) != 1 or len(local) != 1 or local[0].kind != "size":
        return None
    return made_of("size", local, host=True)


def sizes_behind(left: Value, right: Value) -> Value | None:
    """`[len(x)] + [1] * dimensions`: sizes of which the first is the number of samples, and alone in its list; None
    for others."""
    first = [each for thing in left.only(Items) if isinstance(thing, Items) for each in thing.all()]
    others = [each for thing in right.only(Items) if isinstance(thing, Items) for each in thing.all()]
    if [each.kind for each in first] != ["size"] or not others or any(each.is_local or each.things for each in others):
        return None
    return of(Items("tuple", {0: first[0]}, replace(others[0], constant=None)))
