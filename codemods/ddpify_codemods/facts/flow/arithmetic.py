"""What arithmetic makes of means and sums over a rank's samples, of their number, and of what holds each of them."""

from __future__ import annotations

import ast
from collections.abc import Sequence
from dataclasses import replace

from .batches import alike, counted, of_batches
from .dimensions import after_arithmetic, at_least_after, of_dimensions
from .layout import differ, together
from .operation_names import HOST, KEEP_NUMBER, LAYOUTS
from .values import COUPLES, LOCAL_ROWS, MIXED, NUMBERED, OWN_SIZE, Kind, Value, are_mixed, made_of


def combined(operator: ast.operator, left: Value, right: Value) -> Value:
    """What an arithmetic operation makes of two values."""
    both = (left, right)
    if not left.is_local and not right.is_local:
        zero = left.zero and right.zero and isinstance(operator, ast.Add | ast.Sub)
        zero |= (left.zero or right.zero) and isinstance(operator, ast.Mult)
        return replace(made_of("same", both, host=left.host and right.host), zero=zero)
    if are_mixed(left, right):
        return made_of("unknown", both, reason=MIXED)
    host = all(value.host or not value.is_local for value in both)
    if isinstance(operator, ast.FloorDiv) and host and (batches := counted(operator, left, right)):
        return of_batches(made_of("size", both, host=True), batches)
    kind = _combined_kind(operator, left, right)
    reason = "" if kind != "unknown" else _reason(operator, left, right)
    if isinstance(operator, ast.Mod) and left.reason == NUMBERED:
        return replace(made_of("unknown", both), reason=COUPLES)
    made = made_of(kind, both, host=host, reason=reason)
    product = isinstance(operator, ast.MatMult)
    made = of_dimensions(made, after_arithmetic(left, right), 0 if product else at_least_after(both))
    if kind in LOCAL_ROWS - {"picked"} and not product:
        made = of_batches(made, alike(both))
    elif kind in ("size", "sum") and host:
        made = of_batches(made, counted(operator, left, right))
    if kind == "mean" and "inverse" in (left.kind, right.kind):  # what was not known of the divisor is known of it
        return replace(made, made_at=frozenset().union(*(each.made_at for each in both if each.kind != "inverse")))
    return made


def _reason(operator: ast.operator, left: Value, right: Value) -> str:
    if "unknown" in (left.kind, right.kind):
        return ""
    kinds = {left.kind, right.kind}
    rows = kinds & LOCAL_ROWS
    if rows and kinds & {"size", "inverse"}:
        return OWN_SIZE
    if rows and (kinds & {"mean", "sum"} or differ(rows) or _contracts(operator, left, right)):
        return COUPLES
    if isinstance(operator, ast.MatMult):
        return "it may couple samples of a batch with each other"
    return f"a {_word(left)} and a {_word(right)} are combined, which cannot be added up over ranks"


def _contracts(operator: ast.operator, left: Value, right: Value) -> bool:
    """Whether a product of matrices runs over the samples, or makes something for each two of them."""
    if not isinstance(operator, ast.MatMult):
        return False
    both = left.is_local and right.is_local
    return left.kind == "rows_last" or (both and (left.kind == "rows_second" or right.kind == "rows_last"))


def _word(value: Value) -> str:
    words = {
        "inverse": "number by batch size",
        "same": "number",
        "mean": "mean over a batch",
        "sum": "sum over a batch",
        "size": "batch size",
    }
    return words.get(value.kind, "batch")


def _combined_kind(operator: ast.operator, left: Value, right: Value) -> Kind:
    kinds = {left.kind, right.kind}
    if "unknown" in kinds or "shape" in kinds:
        return "unknown"
    rows = kinds & LOCAL_ROWS
    if rows:
        if kinds - LOCAL_ROWS - {"same"} or differ(rows):
            return "unknown"
        if isinstance(operator, ast.MatMult):
            whole = right.kind == "same" and left.kind != "rows_last"
            return together(rows) if left.kind in LOCAL_ROWS and whole else "unknown"
        return together(rows)
    if isinstance(operator, ast.Add | ast.Sub):
        return _added(left, right)
    if isinstance(operator, ast.Mult):
        if kinds == {"sum", "inverse"}:
            return "mean"
        if kinds <= {"mean", "size"} and len(kinds) == 2:
            return "sum"
        if "same" in kinds:
            return left.kind if right.kind == "same" else right.kind
        return "unknown"
    if isinstance(operator, ast.Div) and right.kind == "same":
        return left.kind
    if isinstance(operator, ast.Div) and right.kind == "size":
        return {"sum": "mean", "size": "mean", "same": "inverse"}.get(left.kind, "unknown")  # type: ignore[return-value]
    return "unknown"


def _added(left: Value, right: Value) -> Kind:
    kinds = {left.kind, right.kind}
    if kinds <= {"sum", "size"}:
        return "sum"
    if kinds == {"mean"}:
        return "mean"
    if "same" in kinds:
        same, other = (left, right) if left.kind == "same" else (right, left)
        if other.kind == "mean":
            return "mean"
        if same.zero and other.kind in ("sum", "size"):
            return "sum"
    return "unknown"


def on_number(name: str, value: Value, given: Sequence[Value]) -> Value | None:
    """What a method or function makes of a mean or a sum; None where that is not known."""
    operator = _ARITHMETIC.get(name)
    if operator is not None and len(given) == 1:
        return combined(operator, value, given[0])
    if any(each.is_local for each in given):
        return None
    if name in KEEP_NUMBER:
        is_array = value.dimensions != 0 if name == "numpy" else value.array and name != "item"
        kept = of_dimensions(made_of(value.kind, [value]), None if name in LAYOUTS else value.dimensions)
        unsized = name == "numpy" and not is_array
        return replace(kept, host=value.host or name in HOST, array=is_array, unsized=unsized)
    if name in ("sum", "mean") and not value.host:
        return replace(made_of(value.kind, [value]))
    return None


_ARITHMETIC: dict[str, ast.operator] = {
    "mul": ast.Mult(),
    "div": ast.Div(),
    "true_divide": ast.Div(),
    "add": ast.Add(),
    "sub": ast.Sub(),
}
