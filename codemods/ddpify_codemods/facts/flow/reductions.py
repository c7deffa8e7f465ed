"""What the losses of torch make of a batch: its mean, its sum, or a number for each element."""

from __future__ import annotations

import ast
from collections.abc import Callable, Sequence
from dataclasses import replace

from .dimensions import of_dimensions
from .values import LOCAL_ROWS, OWN_SHAPE, PICKED, Kind, Value, made_of

# Where torch's losses take size_average by place, after what the functions among them compute with: behind a weight.
_AFTER_WEIGHT = frozenset(
    {"CrossEntropyLoss", "NLLLoss", "NLLLoss2d", "BCELoss", "BCEWithLogitsLoss", "MultiLabelSoftMarginLoss"}
    | {"cross_entropy", "nll_loss", "nll_loss2d", "binary_cross_entropy", "binary_cross_entropy_with_logits"}
    | {"multilabel_soft_margin_loss"}
)
_FIRST = frozenset(
    {"MSELoss", "L1Loss", "SmoothL1Loss", "KLDivLoss", "SoftMarginLoss", "MultiLabelMarginLoss"}
    | {"mse_loss", "l1_loss", "smooth_l1_loss", "kl_div", "soft_margin_loss", "multilabel_margin_loss"}
)


def reduction_of(name: str, call: ast.Call, constant: Callable[[ast.expr], object]) -> str:
    """The reduction that a loss is asked for: "mean", "sum", "none", "batchmean", "?" where that is not known.

    Args:
        name: of the function or class. call: of it. constant: what an expression is known to be; None for others.
    """
    words = {word.arg: word.value for word in call.keywords}
    if None in words:  # **options
        return "?"
    if "reduction" in words:
        return _text(constant(words["reduction"]))
    legacy = [words.get("size_average"), words.get("reduce")]
    before = (0 if name[:1].isupper() else 2) + (name in _AFTER_WEIGHT)
    by_place = call.args[before:]
    if any(isinstance(each, ast.Starred) for each in call.args):
        return "?"
    if by_place and name in _AFTER_WEIGHT | _FIRST:
        legacy[0] = by_place[0]
        if len(by_place) > 2:  # reduce, and what stands around it
            return "?"
    average, reduces = (True if each is None else constant(each) for each in legacy)
    if _is_default(legacy[1], reduces) and _is_default(legacy[0], average):
        return "mean"
    if not isinstance(average, bool) or not isinstance(reduces, bool):
        return "?"
    return "none" if not reduces else "mean" if average else "sum"


def _is_default(given: ast.expr | None, value: object) -> bool:
    """Whether an argument is left out, or None."""
    return given is None or (isinstance(given, ast.Constant) and value is None) or value is True


def _text(value: object) -> str:
    return value if isinstance(value, str) and value in ("mean", "sum", "none", "batchmean") else "?"


def loss_of(given: Sequence[Value], reduction: str, weighted: bool) -> Value:
    """What a loss function makes of its arguments.

    Args:
        given: its arguments. reduction: "mean", "sum", "none", "batchmean", or "?" where that is not known.
        weighted: whether some targets count more than others, or not at all.
    """
    local = [value for value in given if value.is_local]
    if not local:
        return made_of("same", given)
    kinds = {value.kind for value in local}
    local += [value for value in given if value.reason == OWN_SHAPE and not value.is_local]
    if reduction == "?" or not kinds <= {*LOCAL_ROWS, "size", "shape"}:
        reason = "" if reduction != "?" else "whether it is a mean or a sum cannot be seen"
        return made_of("unknown", local, reason=reason)
    if reduction == "none":
        return made_of("picked" if "picked" in kinds else "rows", local)
    if reduction == "sum":
        return _one_number("sum", local)
    if weighted:
        return made_of(
            "unknown", local, reason="class weights or ignored targets weigh the batches of the ranks differently"
        )
    if "picked" in kinds:
        return made_of("unknown", local, reason=PICKED)
    return _one_number("mean", local)


def _one_number(kind: Kind, of_: Sequence[Value]) -> Value:
    return replace(of_dimensions(made_of(kind, of_), 0), array=False)


def likelihood(given: Sequence[Value], reduction: Value | None) -> Value:
    """What a CRF of pytorch-crf makes of its arguments: the log likelihood, a sum over samples without a reduction."""
    said = "sum" if reduction is None else reduction.constant
    how = said if said in ("none", "sum", "mean") else "?"
    return loss_of([replace(each, kind="rows") if each.kind == "batch" else each for each in given], str(how), False)
