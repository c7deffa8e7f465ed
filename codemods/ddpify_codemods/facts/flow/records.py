"""Records that a log keeps: `rows.append([epoch, step, loss.item()])`.

Their counts and texts are the same on all ranks, and stay what they are where they are written. So a number is brought
together where it is put into a record, `rows.append([epoch, step, mean_over_ranks(loss.item())])`, by ranks that come
there equally often.
"""

from __future__ import annotations

import ast
import operator
from dataclasses import replace

from .frames import Frame
from .held_values import additive, local_entries, settled
from .reading import Reading
from .values import Items, Value, of


class Records(Reading):
    """What is put into a list of records."""

    def recorded(self, node: ast.expr, value: Value, frame: Frame) -> Value:
        """A record as a list gets it: with numbers of all ranks."""
        apart = any(context.how == "rows" or self.uneven(context) for context in self.contexts)
        if self.in_forward or self.own_ways or apart or not isinstance(node, ast.List | ast.Tuple):
            return value
        if any(isinstance(each, ast.Starred) for each in node.elts) or not local_entries(value):
            return value
        parts = [self.value(each, frame) for each in node.elts]
        numbers = [_is_number(each) for each in parts]
        same = [not each.is_local and not local_entries(each) for each in parts]
        if not any(numbers) or not any(same) or not all(map(operator.or_, numbers, same)):
            return value
        for place, each in enumerate(node.elts):
            if numbers[place]:
                self.demand(each, parts[place], frame)
                parts[place] = replace(settled(parts[place]), constant=None)
        return of(Items("tuple" if isinstance(node, ast.Tuple) else "list", dict(enumerate(parts))))


def _is_number(value: Value) -> bool:
    """Whether something is a number of Python that ranks can bring together: no tensor, which may be differentiated."""
    return value.host and value.is_local and additive(value) is not None
