"""Losses over a batch of which every rank holds its rows: reduced over all ranks, so that a mean is that of the whole.

A loss becomes a sum over the local samples and what it is divided by; both are summed over ranks (HAZARDS L1-L4). This
serves models that compute their loss in their forward.
"""

from __future__ import annotations

import inspect
from collections.abc import Callable, Sequence
from functools import cache
from typing import Any

import torch
import torch.nn.functional as F
from torch import Tensor
from torch.autograd import Function
from torch.overrides import TorchFunctionMode

from ..lazy.partial import partial
from ..sharding.collectives import add_over_ranks, once
from .region import Region

_MEANS = {torch.mean, Tensor.mean}
_SUMS = {torch.sum, Tensor.sum}
CLASSES = {F.cross_entropy, F.nll_loss}
# Their reduction="mean" is the mean of what reduction="none" gives.
_ELEMENTWISE = {
    F.binary_cross_entropy,
    F.binary_cross_entropy_with_logits,
    F.cosine_embedding_loss,
    F.gaussian_nll_loss,
    F.hinge_embedding_loss,
    F.huber_loss,
    F.kl_div,
    F.l1_loss,
    F.margin_ranking_loss,
    F.mse_loss,
    F.multi_margin_loss,
    F.multilabel_margin_loss,
    F.multilabel_soft_margin_loss,
    F.poisson_nll_loss,
    F.smooth_l1_loss,
    F.soft_margin_loss,
    F.triplet_margin_loss,
}
# To these, by the name of their first argument, a single dimension is one sample.
_OF_VECTORS = {
    F.cosine_embedding_loss: "input1",
    F.cross_entropy: "input",
    F.multi_margin_loss: "input",
    F.multilabel_margin_loss: "input",
    F.multilabel_soft_margin_loss: "input",
    F.nll_loss: "input",
    F.triplet_margin_loss: "anchor",
}
KNOWN = {*_MEANS, *_SUMS, *CLASSES, *_ELEMENTWISE, F.ctc_loss}
# Of these, each number of the input gives one, so that there are as many as in the input, if the rest is as large.
_NUMBER_BY_NUMBER = {
    F.binary_cross_entropy,
    F.binary_cross_entropy_with_logits,
    F.huber_loss,
    F.kl_div,
    F.l1_loss,
    F.mse_loss,
    F.smooth_l1_loss,
}
# With weights, torch divides these by the sum of the weights.
_DIVIDED_BY_WEIGHTS = {F.huber_loss, F.l1_loss, F.mse_loss, F.smooth_l1_loss}

_COUNT = "it computes {} losses for a part of the batch, or than it did when it was first divided"


class Losses(TorchFunctionMode):
    """Handles every full reduction inside a region, according to its mode.

    Those over something else than samples, such as a penalty on weights, are the same on every rank and left alone.
    """

    def __init__(self, region: Region) -> None:
        super().__init__()
        self.region = region
        self.known = list(region.over_samples)

    def __torch_function__(
        self, func: Callable[..., Any], types: Sequence[type], args: tuple[Any, ...] = (), kwargs: Any = None
    ) -> Any:
        kwargs = kwargs or {}
        given = reduction(func, args, kwargs)
        if given is None:
            return func(*args, **kwargs)
        if self.region.mode == "shard":
            if not self.known:
                raise UnknownLoss(_COUNT.format("more"))
            return reduced(func, given, self.region.enter) if self.known.pop(0) else func(*args, **kwargs)
        result = func(*args, **kwargs)
        tensors = [value for value in (*args, *kwargs.values()) if isinstance(value, Tensor)]
        shapes = [tensor.shape for tensor in tensors]
        if self.region.mode == "record":
            self.region.losses.append((shapes, result.detach()))
            return result
        if not self.region.losses:
            raise UnknownLoss(_COUNT.format("more"))
        shapes_of_whole, whole = self.region.losses.pop(0)
        # What is empty in the whole batch may be a selection of samples.
        over_samples = shapes != shapes_of_whole or any(not tensor.numel() for tensor in tensors)
        self.region.over_samples.append(over_samples)
        return _Recorded.apply(result, whole) if over_samples else result  # type: ignore[no-untyped-call]

    def __exit__(self, kind: Any, error: Any, trace: Any) -> None:
        super().__exit__(kind, error, trace)  # type: ignore[no-untyped-call]
        left = self.known if self.region.mode == "shard" else self.region.mode == "replay" and self.region.losses
        if left and kind is None:
            raise UnknownLoss(_COUNT.format("fewer"))


class UnknownLoss(RuntimeError):
    """A loss of which the whole cannot be told from the parts."""


def reduced(func: Callable[..., Any], given: dict[str, Any], on_enter: Callable[[], None]) -> Tensor:
    """What a loss or full reduction gives for the whole batch, of which this rank has a part; a collective for a mean.

    Args:
        func, given: what `reduction` knows, with this rank's samples in it. on_enter: as for `partial`.
    """
    part, divisor, dtype = summands(func, given)
    if divisor is not None:
        total = divisor.detach().clone() if isinstance(divisor, Tensor) else torch.tensor(divisor, device=part.device)
        add_over_ranks(once(total))
        part = part / total
    return partial(part.to(dtype), None, (on_enter,))


def summands(
    func: Callable[..., Any], given: dict[str, Any], all_count: bool = False
) -> tuple[Tensor, Tensor | int | None, torch.dtype]:
    """This rank's part of a loss or full reduction, as `reduced` takes it, and the dtype of the whole.

    Args:
        all_count: whether it is known that none of the targets is `ignore_index`, and that they have no weights.

    Returns:
        The sum over this rank's samples; what it would be divided by for a mean over them: a number that sizes tell, or
        a tensor, where it depends on what the targets are; None for a sum; the dtype.
    """
    if func in _SUMS or func in _MEANS:
        each, how = given["input"], "sum" if func in _SUMS else "mean"
        dtype = func(each.new_ones(1)).dtype  # autocast has its own mind
    elif func in CLASSES and given["input"].dtype in (torch.float32, torch.float64):
        summed = func(**{**given, "reduction": "sum"})
        if given["reduction"] == "sum":
            return summed, None, summed.dtype
        return summed, given["target"].numel() if all_count else weight_of_targets(given), summed.dtype
    elif func in _NUMBER_BY_NUMBER and _of_one_size(given):
        how, input = given["reduction"], given["input"]
        summed = func(**{**given, "reduction": "sum"})
        if how == "sum":
            return summed, None, summed.dtype
        return summed, len(input) if how == "batchmean" else input.numel(), summed.dtype
    else:
        each, how = func(**{**given, "reduction": "none"}), given["reduction"]
        dtype = each.dtype
    half = each.dtype in (torch.float16, torch.bfloat16)
    summed = each.sum(dtype=torch.float32) if half else each.sum()  # float16 ends at 65504
    if how == "sum":
        return summed, None, dtype
    if func is F.ctc_loss:  # the mean over samples of what each gives for one of its targets
        lengths = torch.as_tensor(given["target_lengths"], device=each.device).clamp(min=1)
        return (each / lengths).sum(), each.numel(), dtype
    if func in CLASSES:
        return summed, weight_of_targets(given), dtype
    return summed, len(given["input"]) if how == "batchmean" else each.numel(), dtype


def _of_one_size(given: dict[str, Any]) -> bool:
    """Whether the tensors that a loss is given have one size, and are of a type in which a sum is no narrower."""
    shape = given["input"].shape
    for each in given.values():
        if isinstance(each, Tensor) and (each.dtype not in _WIDE or each.shape != shape):
            return False
    return True


_WIDE = {torch.float32, torch.float64}
_OPERATIONS: dict[tuple[Callable[..., Any], str], str] = {}


def operation(func: Callable[..., Any], given: dict[str, Any]) -> str:
    """The name of the autograd node that a loss or full reduction with gradients makes, as printed with its value.

    Args: as for `reduced`.
    """
    key = func, given.get("reduction", "")
    if key not in _OPERATIONS:  # what torch calls it is seen when it is computed, once
        result = func(given["input"]) if func in _MEANS or func in _SUMS else func(**given)
        _OPERATIONS[key] = type(result.grad_fn).__name__
    return _OPERATIONS[key]


def reduction(func: Callable[..., Any], args: tuple[Any, ...], kwargs: dict[str, Any]) -> dict[str, Any] | None:
    """The arguments by name, with the defaults, of a loss or full reduction that `reduced` knows; None for others."""
    if func not in KNOWN:
        return None
    if func in _MEANS or func in _SUMS:
        is_full = len(args) == 1 and isinstance(args[0], Tensor) and not kwargs and args[0].dim() > 0
        return {"input": args[0]} if is_full else None
    given = _by_name(func, args, kwargs)
    known = given is not None and (
        given["reduction"] in ("mean", "sum") or (func is F.kl_div and given["reduction"] == "batchmean")
    )
    return given if known else None


def unreduced(func: Callable[..., Any], args: tuple[Any, ...], kwargs: dict[str, Any]) -> dict[str, Any] | None:
    """The arguments by name of a loss that gives one number for each sample, or each number of it; None for others."""
    if func not in CLASSES and func not in _ELEMENTWISE:
        return None
    given = _by_name(func, args, kwargs)
    return given if given is not None and given["reduction"] == "none" else None


def _by_name(func: Callable[..., Any], args: tuple[Any, ...], kwargs: dict[str, Any]) -> dict[str, Any] | None:
    """The arguments of a loss, with the defaults; None where samples are not in its first dimension, or it is old."""
    form = func, len(args), tuple(kwargs)
    if form not in _forms:
        signature, names, defaults = _signature(func)
        if len(args) + len(kwargs) > len(names) or kwargs.keys() - names[len(args) :]:
            signature.bind(*args, **kwargs)  # says what is wrong
        _forms[form] = names[: len(args)], defaults
    names, defaults = _forms[form]
    given = {**defaults, **dict(zip(names, args, strict=True)), **kwargs}
    if given.get("size_average") is not None or given.get("reduce") is not None:
        return None
    if func in _DIVIDED_BY_WEIGHTS and given.get("weight") is not None:
        return None
    vectors = _OF_VECTORS.get(func)
    if vectors is not None and given[vectors].dim() < 2:
        return None
    return given


_forms: dict[tuple[Callable[..., Any], int, tuple[str, ...]], tuple[tuple[str, ...], dict[str, Any]]] = {}


def weight_of_targets(given: dict[str, Any]) -> Tensor | int:
    """What torch divides the mean of a classification loss by: the weights of the targets that count."""
    target, weight = given["target"], given["weight"]
    if target.is_floating_point():  # class probabilities
        return int(target.numel()) // int(target.size(1 if target.dim() > 1 else 0))
    counts = target != given["ignore_index"]  # as a mask: XLA has no shapes that depend on values
    each: Tensor = counts if weight is None else weight[target.where(counts, 0)].where(counts, 0.0)
    return each.sum()


@cache
def _signature(func: Callable[..., Any]) -> tuple[inspect.Signature, tuple[str, ...], dict[str, Any]]:
    """`Signature.bind` takes longer than a small loss."""
    signature = inspect.signature(func)
    parameters = signature.parameters
    defaults = {name: each.default for name, each in parameters.items() if each.default is not each.empty}
    return signature, tuple(parameters), defaults


class _Recorded(Function):
    """The value of the whole in place of the local one, with the local one's graph."""

    @staticmethod
    def forward(ctx: Any, local: Tensor, whole: Tensor) -> Tensor:
        return whole.clone()

    @staticmethod
    def backward(ctx: Any, *gradients: Tensor) -> tuple[Tensor, None]:
        return gradients[0], None
