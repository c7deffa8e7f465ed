"""What samples look up in a tensor that all ranks have: `torch.gather(table, 0, steps)`."""

from __future__ import annotations

import ast
from collections.abc import Sequence

from .dimensions import of_dimensions
from .layout import axis
from .values import Module, Value, made_of


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
