"""Rounding kept from growing in a trial: what a batch normalisation gives is held to what it gave for the whole batch.

Deep networks amplify rounding from layer to layer, and a ReLU makes a jump of it (docs/contract.md, "How exact"): a
ResNet-101 of which nothing is held differs by 2e-4 after its forward, and a trial in float32 says nothing of it. So
where a batch normalisation of the part agrees with that of the whole up to what rounding makes of a few layers, the
values of the whole take its place, with the gradients of the part. From the first that does not agree on, nothing is
held, and the outputs differ.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from contextlib import contextmanager
from typing import Any

import torch
from torch import Tensor, nn

from ..forward.batch_norm import BatchNormCall
from ..sharding.collectives import Rows, shard
from ..torch_internals import CALL
from .closeness import tolerance

_OF_A_LAYER = 0.1  # of the tolerance; a layer of a ResNet-101 takes a hundredth of that


@contextmanager
def noted(module: nn.Module) -> Iterator[list[Tensor]]:
    """Note what the batch normalisations of a copy of a module give, in turn; in float32 only, where it is needed."""
    given: list[Tensor] = []

    def note(output: Any) -> Any:
        if _is_held(output):
            given.append(output.detach().clone())  # what follows may change it in place
        return output

    with _after_each(module, note):
        yield given


@contextmanager
def held(module: nn.Module, given: list[Tensor], total: int) -> Iterator[None]:
    """Hold a copy of a module, which computes this rank's rows of `total`, to what was noted; empties `given`."""

    def hold(output: Any) -> Any:
        if not given or not _is_held(output):
            return output
        with torch.DisableTorchFunction(), torch.no_grad():
            rows = _rows_of(given.pop(0), output, total)
        if rows is None:
            given.clear()
            return output
        result = output.clone()
        result.data.copy_(rows)
        return result

    with _after_each(module, hold):
        yield
    given.clear()


def _is_held(output: Any) -> bool:
    return isinstance(output, Tensor) and output.dtype == torch.float32


def _rows_of(whole: Tensor, part: Tensor, total: int) -> Tensor | None:
    """The rows of the whole that are those of a part, up to rounding; None if there are no such."""
    if whole.size(0) % total:
        return None
    for rows in (Rows(), Rows(major=False)):
        expected = shard(whole, total, rows)
        if expected.shape != part.shape:
            continue
        if float((expected - part).norm()) <= _OF_A_LAYER * tolerance(expected) * float(expected.norm()):
            return expected
    return None


@contextmanager
def _after_each(module: nn.Module, change: Callable[[Any], Any]) -> Iterator[None]:
    """Pass on what each batch normalisation gives as something else makes it."""
    calls = [(part, vars(part).get(CALL)) for part in module.modules()]
    routed = [(part, call) for part, call in calls if isinstance(call, BatchNormCall)]
    for part, call in routed:
        vars(part)[CALL] = _then(call, change)
    try:
        yield
    finally:
        for part, call in routed:
            vars(part)[CALL] = call


def _then(call: Callable[..., Any], change: Callable[[Any], Any]) -> Callable[..., Any]:
    return lambda *args, **kwargs: change(call(*args, **kwargs))
