"""How a module's forward is divided by samples."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager, nullcontext
from dataclasses import dataclass, field
from functools import cached_property
from typing import Any

import torch
from torch import Tensor, nn

from ..launch.environment import draws_original
from ..lazy.held_rows import size
from ..sharding import structure
from ..sharding.collectives import AnyPlace, Rows, shard
from ..sharding.graphs import AnyDrawn, AnyRows, Count, Layout, Listed, OwnNumbers, Plan, Segment, Taken, at
from ..torch_internals import BatchNorm, hooks
from . import rank_stream
from .decisions import Decisions
from .draws import Draws
from .inventory import is_hooked
from .kept_attributes import Attribute
from .libraries import libraries_of, package
from .losses import Losses
from .region import Draw, Region, enter


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
    whether rounding hides it in the model's own precision. graphs: how the samples lie, if they are graphs, in place of
    `inputs`. gives_loss: whether its output has a number with a gradient. kept: the attributes that get values of the
    samples in each forward, which the last of `outputs` are about. reason: why it cannot be divided; "" if it can.
    """

    inputs: tuple[Rows | None, ...] = ()
    batch: tuple[int, int] = (0, 0)
    outputs: tuple[AnyRows | None, ...] = ()
    places: dict[Draw, AnyDrawn | None] = field(default_factory=dict)
    losses: tuple[bool, ...] = ()
    decides: bool = False
    counts: dict[tuple[str, int, int], bool] = field(default_factory=dict)
    sizes: bool = False
    rounded: torch.dtype | None = None
    eager: bool = False
    in_float64: bool = False
    graphs: Plan | None = None
    gives_loss: bool = False
    kept: tuple[Attribute, ...] = ()
    reason: str = ""

    @property
    def in_own_size(self) -> dict[Draw, AnyDrawn | None]:
        """What is drawn in a size that depends on the samples of a part."""
        return {draw: place for draw, place in self.places.items() if isinstance(place, OwnNumbers)}

    @cached_property
    def drawn(self) -> frozenset[tuple[str, int]]:
        """What the forward draws with, and of how many dims."""
        return frozenset((name, dims) for name, dims, _ in self.places)

    def samples(self, leaves: Sequence[Any]) -> int:
        """The number of samples in the whole input; 0 if its graphs do not lie as they did."""
        if self.graphs is not None:
            layout = self.graphs.layout(leaves)
            return 0 if layout is None else layout.total
        leaf, dim = self.batch
        return size(leaves[leaf], dim)

    def layout(self, leaves: Sequence[Any]) -> Layout | None:
        """Where the samples lie, if they are graphs."""
        return None if self.graphs is None else self.graphs.layout(leaves)

    def inputs_at(self, layout: Layout | None) -> list[AnyPlace | None]:
        """Where the samples lie in each leaf, as collectives are told it; layout: that of the leaves, of graphs."""
        if layout is None or self.graphs is None:
            return [*self.inputs]
        return [
            at(layout, Segment(place.dim, place.axis)) if isinstance(place, Taken) else None
            for place in self.graphs.places
        ]

    def own(self, leaves: Sequence[Any], layout: Layout | None) -> list[Any]:
        """This rank's part of an input, without gradients; what all ranks have alike is copied."""
        values = [leaf.detach() if isinstance(leaf, Tensor) else leaf for leaf in leaves]
        if layout is not None and self.graphs is not None:
            parts = layout.own(values, self.graphs.places)
            return [
                structure.copied(part) if part is value else part for part, value in zip(parts, values, strict=True)
            ]
        total = self.samples(leaves)
        return [
            shard(value, total, rows) if rows else structure.copied(value)
            for value, rows in zip(values, self.inputs, strict=True)
        ]

    def first(self, leaves: Sequence[Any], total: int) -> list[Any]:
        """An input of the first samples of another."""
        layout = self.layout(leaves)
        if layout is not None and self.graphs is not None:
            return layout.part(leaves, self.graphs.places, torch.arange(total, device="cpu"))
        return [
            leaf.narrow(rows.dim, 0, total) if rows else leaf for leaf, rows in zip(leaves, self.inputs, strict=True)
        ]

    def may_mix(self, leaves: Sequence[Any]) -> bool:
        """Whether more than one rank has some of everything in its part, as edges, so that a trial shows it mixed."""
        layout = self.layout(leaves)
        return layout is None or layout.is_spread()

    def samples_in(self, parts: Sequence[Any]) -> list[Tensor]:
        """The tensors among the parts of an input that are not the same for every part."""
        places: Sequence[Any] = self.inputs if self.graphs is None else self.graphs.places
        return [
            part for part, place in zip(parts, places, strict=True) if place is not None and isinstance(part, Tensor)
        ]

    def settings(self, leaves: list[Any]) -> list[Any]:
        """An input without the numbers that say how many graphs, or rows of them, it has, and a word for each graph."""
        if self.graphs is None:
            return leaves
        pairs = zip(leaves, self.graphs.places, strict=True)
        return [None if isinstance(place, (Count, Listed)) else leaf for leaf, place in pairs]

    def row_numbers(self, leaves: Sequence[Any]) -> list[Tensor]:
        """The leaves that are numbers of rows."""
        places = () if self.graphs is None else self.graphs.places
        return [leaf for leaf, place in zip(leaves, places, strict=False) if isinstance(place, Taken) and place.numbers]


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
