"""Sequences of different lengths: packed, one step of all samples behind the other, and padded to the longest again.

torch.nn.utils.rnn.PackedSequence: its `data`, also its first entry, has as many rows as samples have steps together.
"""

from __future__ import annotations

import ast
from collections.abc import Sequence
from dataclasses import replace

from .layout import axis
from .values import LOCAL_ROWS, LONGEST, Items, Kind, Value, made_of, of

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


def pads_again(name: str, node: ast.Call) -> bool:
    """Whether a call is `outputs, lengths = pad_packed_sequence(packed)`, to the longest sample."""
    said = {word.arg for word in node.keywords}
    return name == _PADS_AGAIN and 0 < len(node.args) <= 3 and said.isdisjoint({"total_length", None})


def is_named(node: ast.Call) -> bool:
    """Whether what a call is given first is a name, which can be asked once more."""
    return isinstance(node.args[0], ast.Name)


def padded_again(given: Sequence[Value], batch_first: object, agreed: bool) -> Value:
    """What pads packed sequences gives. agreed: whether to the longest sample of all ranks."""
    local = [value for value in given if value.is_local]
    lengths = made_of("rows", local)
    if not agreed:
        return of(Items("tuple", {0: made_of("unknown", local, reason=LONGEST), 1: lengths}))
    kind: Kind = "rows_moved" if not isinstance(batch_first, bool) else "rows" if batch_first else "rows_second"
    return of(Items("tuple", {0: replace(made_of(kind, local), reason=""), 1: replace(lengths, reason="")}))


def of_each(sequences: Value, indices: Sequence[Value]) -> Value:
    """What is taken of such sequences: `outputs[range(len(x)), lengths - 1]` is one entry of each, by its own place."""
    by_samples = len(indices) > 1 and any(each.kind in LOCAL_ROWS for each in indices[:2])
    return made_of("rows", [sequences]) if by_samples else sequences
