"""Sequences of different lengths: packed, one step of all samples behind the other, and padded to the longest again.

torch.nn.utils.rnn.PackedSequence: its `data`, also its first entry, has as many rows as samples have steps together.
"""

from __future__ import annotations

import ast
from collections.abc import Sequence

from .layout import axis
from .values import LOCAL_ROWS, LONGEST, Items, Value, made_of, of

PACKED = "its samples are packed, and the steps of a rank's together are not as many as those of another"
_PACKS = frozenset({"torch.nn.utils.rnn.pack_padded_sequence", "torch.nn.utils.rnn.pack_sequence"})
_PADS_AGAIN = "torch.nn.utils.rnn.pad_packed_sequence"


def packed(name: str, given: Sequence[Value]) -> Value | None:
    """What `pack_padded_sequence(x, lengths)` gives; None for other calls."""
    if name not in _PACKS or not given or not (given[0].kind in LOCAL_ROWS and axis(given[0].kind) in (0, 1)):
        return None
    return made_of("unknown", [value for value in given if value.is_local], reason=PACKED)


def is_packed(value: Value) -> bool:
    """Whether something is a PackedSequence."""
    return value.kind == "unknown" and value.reason == PACKED


def steps_of(sequences: Value) -> Value:
    """Its data: one row for each step of each sample."""
    return made_of("picked", [sequences], reason=PACKED)


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
