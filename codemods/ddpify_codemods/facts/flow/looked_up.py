"""What samples look up in a tensor that all ranks have: `torch.gather(table, 0, steps)`, the nearest of a codebook."""

from __future__ import annotations

import ast
from collections.abc import Sequence
from dataclasses import replace

from .batches import of_batches
from .dimensions import of_dimensions
from .layout import axis
from .values import LOCAL_ROWS, Module, Thing, Value, made_of


def looked_up(table: Value, dimension: object, given: Sequence[Value]) -> Value | None:
    """What samples take of a table that all ranks have, as many numbers as there are places for them:
    `table.gather(-1, steps)` is `table[steps]`; None for others."""
    local = [each for each in given if each.is_local]
    is_tensor = all(isinstance(each, Module) and isinstance(each.made, ast.Attribute) for each in table.things)
    if table.is_local or not is_tensor or dimension not in (0, -1) or len(local) != 1:  # `self.betas`, or none of these
        return None
    [places] = local
    alone = places.dimensions == 1 and axis(places.kind) == 0
    return of_dimensions(made_of("rows", [places]), 1) if alone else None


def taken(table: Value, dimension: object, places: Value) -> Value | None:
    """The rows of a table that all ranks have, one for each place: `torch.index_select(table, 0, places)`; None for
    others."""
    if table.is_local or dimension != 0 or places.kind not in LOCAL_ROWS or axis(places.kind) != 0:
        return None
    return replace(of_batches(made_of("rows", [places]), places.batches), merged=places.merged)


def distances(one: Value, other: Value) -> Value | None:
    """How far what samples have is from each of what all ranks have, or of what the same sample has:
    `torch.cdist(x, codebook)`; None where samples meet, or may."""
    if one.kind not in LOCAL_ROWS or axis(one.kind) != 0 or not one.dimensions:
        return None
    own = other.kind in LOCAL_ROWS and axis(other.kind) == 0 and one.dimensions == other.dimensions != 2
    if not own and (other.is_local or other.things - _tensors(other)):
        return None
    return of_dimensions(of_batches(made_of("rows", [one, other]), one.batches), one.dimensions)


def _tensors(value: Value) -> frozenset[Thing]:
    """Attributes of modules, which may be tensors."""
    return frozenset(e for e in value.things if isinstance(e, Module) and isinstance(e.made, ast.Attribute))
