"""Sequences of different lengths that were packed, and are padded to the longest of a rank's samples again."""

from __future__ import annotations

import ast
from collections.abc import Sequence

from .values import LOCAL_ROWS, LONGEST, Items, Value, made_of, of

_PADS_AGAIN = "torch.nn.utils.rnn.pad_packed_sequence"


def padded_again(name: str, node: ast.Call, given: Sequence[Value]) -> Value | None:
    """What `outputs, lengths = pad_packed_sequence(packed)` gives; None for other calls, and if the length is given."""
    local = [value for value in given if value.is_local]
    if name != _PADS_AGAIN or not local or len(node.args) > 3:
        return None
    if any(word.arg in ("total_length", None) for word in node.keywords):
        return None
    return of(Items("tuple", {0: made_of("unknown", local, reason=LONGEST), 1: made_of("rows", local)}))


def of_each(sequences: Value, indices: Sequence[Value]) -> Value:
    """What is taken of such sequences: `outputs[range(len(x)), lengths - 1]` is one entry of each, by its own place."""
    by_samples = len(indices) > 1 and any(each.kind in LOCAL_ROWS for each in indices[:2])
    return made_of("rows", [sequences]) if by_samples else sequences
