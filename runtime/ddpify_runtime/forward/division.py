"""How a module's forward is divided by samples."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager, nullcontext
from dataclasses import dataclass, field
from typing import Any

import torch
from torch import nn

from ..launch.environment import draws_original
from ..sharding.collectives import Rows, size
from ..torch_internals import BatchNorm, hooks
from . import rank_stream
from .decisions import Decisions
from .draws import Draws
from .inventory import is_hooked
from .libraries import libraries_of, package
from .losses import Losses
from .region import Region, enter


@dataclass(frozen=True)
class Division:
    """How one form of input is divided.

    inputs: where the samples lie in each input leaf, None for a leaf that every rank takes whole. batch: the leaf and
    dim that tell the number of samples. outputs: the same for the output leaves; None for one that is the same on every
    rank, such as a loss. places: where the samples lie in the random numbers that the forward draws, by operation;
    empty if it draws none. losses: for each loss that it computes whether it is over samples; empty if none is.
    decides, counts: whether it decides by numbers of the whole batch, and where it counts samples. sizes: whether the
    sizes of its outputs may depend on the values of its input. rounded: the type that it computes in by itself, where
    that is coarser than its input's. eager: whether a compiled module is computed without compiling. in_float64:
    whether rounding hides it in the model's own precision. reason: why it cannot be divided; "" if it can.
    """

    inputs: tuple[Rows | None, ...] = ()
    batch: tuple[int, int] = (0, 0)
    outputs: tuple[Rows | None, ...] = ()
    places: dict[tuple[str, int], Rows | None] = field(default_factory=dict)
    losses: tuple[bool, ...] = ()
    decides: bool = False
    counts: dict[tuple[str, int, int], bool] = field(default_factory=dict)
    sizes: bool = False
    rounded: torch.dtype | None = None
    eager: bool = False
    in_float64: bool = False
    reason: str = ""

    def samples(self, leaves: Sequence[Any]) -> int:
        """The number of samples in the whole input."""
        leaf, dim = self.batch
        return size(leaves[leaf], dim)


@contextmanager
def sharded(region: Region, own: torch.device | None = None) -> Iterator[None]:
    """Be in a shared region; handle what it draws, and its losses if it has any.

    own: the device of the samples, where this rank may draw for them alone, rather than what one process would draw.
    Something drawn for no samples, such as whether a layer is left out, has to be the same on every rank.
    """
    if None in region.places.values():
        own = None
    draws = own is None and region.places
    before = enter(region)
    if own is not None:
        rank_stream.begin(own)
    try:
        if not (draws or region.over_samples or region.decides):
            yield
            return
        with (
            Draws(region) if draws else nullcontext(),
            Losses(region) if region.over_samples else nullcontext(),
            Decisions(region) if region.decides else nullcontext(),
        ):
            yield
    finally:
        enter(before)
        if own is not None:
            rank_stream.end()


def computed(region: Region, own: torch.device | None, forward: Callable[..., Any], args: Any, kwargs: Any) -> Any:
    """What a forward gives in a shared region; as `sharded`, which costs as much as a small layer."""
    if region.places or region.over_samples or region.decides:
        with sharded(region, own):
            return forward(*args, **kwargs)
    before = enter(region)
    if own is not None:
        rank_stream.begin(own)
    try:
        return forward(*args, **kwargs)
    finally:
        enter(before)
        if own is not None:
            rank_stream.end()


def watched(module: nn.Module, is_part: bool = False) -> str:
    """What would see, in a divided forward or backward, a part of the batch or a local gradient; "" if nothing does.

    is_part: whether the module is tried in the midst of a forward, which may collect what its library's hooks see.
    """
    libraries = set() if is_part else libraries_of(module)
    for name, part in module.named_modules():
        before, after, *backward = hooks(part)
        if any(package(hook) not in libraries for hook in after.values()) or any(backward):
            return f"a hook on {name or 'it'} sees its batches or gradients"
        if any(type(hook).__module__[:6] != "torch." and package(hook) not in libraries for hook in before.values()):
            return f"a hook on {name or 'it'} sees its batches"
    for name, parameter in module.named_parameters():
        if parameter.requires_grad and not parameter.is_leaf:
            return f"{name} is computed from something else"
        if is_hooked(parameter):
            return f"a hook on {name} sees its gradients"
    return ""


def is_compilable(module: nn.Module, found: Division) -> bool:
    """Whether a compiled module can take its share: it needs no mode that sees its operations, and sends nothing."""
    batch_statistics = any(isinstance(part, BatchNorm) for part in module.modules())
    draws_for_all = found.places and (draws_original() or None in found.places.values())
    return not (draws_for_all or found.losses or found.decides or batch_statistics)
