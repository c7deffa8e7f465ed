"""What torch.einsum makes of batches, by its equation."""

from __future__ import annotations

from collections.abc import Sequence

from .layout import along, axis
from .values import COUPLES, LOCAL_ROWS, Value, made_of


def einsum(equation: object, operands: Sequence[Value]) -> Value | None:
    """The product; None where the equation does not say what becomes of the samples.

    Args:
        equation: such as "bij,bjk->bik". operands: one for each of its terms.
    """
    local = [each for each in operands if each.is_local]
    if not isinstance(equation, str) or "->" not in equation or "." in equation:
        return None
    terms, _, result = equation.replace(" ", "").partition("->")
    letters = set()
    for term, operand in zip(terms.split(","), operands, strict=False):
        if operand.is_local:
            samples = axis(operand.kind) if operand.kind in LOCAL_ROWS else None
            if samples is None or not -len(term) <= samples < len(term):
                return None
            letters.add(term[samples])
    if len(letters) != 1:
        return made_of("unknown", local, reason=COUPLES)
    place = result.find(letters.pop())
    if place < 0:
        return made_of("sum", local)
    return made_of(along(-1 if place >= 2 and place == len(result) - 1 else place), local)
