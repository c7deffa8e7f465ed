"""What samples look up in a tensor that all ranks have: `torch.gather(table, 0, steps)`, the nearest of a codebook."""

from __future__ import annotations

import ast
from collections.abc import Sequence
from dataclasses import replace

from .batches import of_batches
from .dimensions import of_dimensions
from .layout import axis
from .values import LOCAL_ROWS, Module, Value, made_of

_OF_ALL_SAMPLES = LOCAL_ROWS - {"picked"}


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
    if table.is_local or dimension != 0 or places.kind not in _OF_ALL_SAMPLES or axis(places.kind) != 0:
        return None
    return replace(of_batches(made_of("rows", [places]), places.batches), merged=places.merged)


def distances(one: Value, other: Value) -> Value | None:
    """How far what samples have is from each of what all ranks have, or of what the same sample has:
    `torch.cdist(x, codebook)`; None where samples meet, or may."""
    if one.kind not in _OF_ALL_SAMPLES or axis(one.kind) != 0 or not one.dimensions:
        return None
    own = other.kind in _OF_ALL_SAMPLES and axis(other.kind) == 0 and one.dimensions == other.dimensions != 2
    if not own and (other.is_local or not _is_matrix(other)):
        return None
    found = of_batches(made_of("rows", [one, other]), one.batches)
    return of_dimensions(replace(found, merged=one.merged or other.merged), one.dimensions)


def _is_matrix(value: Value) -> bool:
    """Whether a tensor has two dimensions: several codebooks, `(books, codes, size)`, would have others for each
    sample."""
    if value.dimensions is not None or not value.things:
        return value.dimensions == 2
    weights = [each for each in value.things if isinstance(each, Module) and isinstance(each.made, ast.Attribute)]
    tables = [each for each in weights if each.made.attr == "weight" and each.parent is not None]  # type: ignore[attr-defined]
    return len(tables) == len(value.things) and all(
        each.parent is not None and each.parent.name in ("torch.nn.Embedding", "torch.nn.Linear") for each in tables
    )
