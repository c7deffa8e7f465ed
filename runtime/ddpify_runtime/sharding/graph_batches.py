"""How an input may hold graphs: as a batch of a library that says where they lie, or as tensors that show it.

Without a library: which graph each node belongs to is a vector of whole numbers that begins with 0 and never falls or
skips one, as `data.batch`; edges are pairs of nodes of one graph each. Where edges alone are given, what they do not
join is apart. What is guessed here is tried before it is relied on, and looked at again in each call.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from typing import Any

import torch
from torch import Tensor

from ..torch_geometric_internals import is_batch, stores
from .collectives import world_size
from .graph_axes import AxisOf, Blocks, Ends, Lengths, Owners
from .graphs import (
    GRAPHS,
    Bounds,
    Count,
    Listed,
    OfRows,
    Place,
    Plan,
    Shifted,
    Shifts,
    Taken,
)
from .structure import Form, Held


def plans(leaves: Sequence[Any], form: Form) -> Iterator[Plan]:
    """Ways to see graphs in an input; the numbers of graphs and rows are numbers of the input first, then any."""
    batches = [held.like for held in _objects(form) if is_batch(held.like)]
    for found in [*(_of_library(leaves, batch) for batch in batches[:1]), _of_tensors(leaves)]:
        layout = None if found is None else found.layout(leaves)
        if found is None or layout is None:
            continue
        of_graphs = () if isinstance(found.axes[0], Blocks) else (GRAPHS,)
        numbers = {len(layout.axis(axis)): axis for axis in (*range(len(layout.axes)), *of_graphs)}
        counted = [Count(numbers[leaf]) if type(leaf) is int and leaf in numbers else None for leaf in leaves]
        if any(counted):
            places = [count or place for count, place in zip(counted, found.places, strict=True)]
            yield Plan(found.axes, tuple(places))
        yield found


def _objects(form: Form) -> Iterator[Held]:
    for _, held in form.objects:
        if isinstance(held, Held):
            yield held
            yield from _objects(held.form)


def _of_library(leaves: Sequence[Any], batch: Any) -> Plan | None:
    """By what a batch of torch_geometric keeps to take itself apart again."""
    at = {id(leaf): place for place, leaf in enumerate(leaves) if isinstance(leaf, Tensor)}
    axes: list[AxisOf] = []
    bounds_of: list[Tensor] = []
    places: list[Place] = [None] * len(leaves)

    def axis_of(bounds: Tensor) -> int | None:
        if torch.equal(bounds, torch.arange(len(bounds), device=bounds.device)):
            return GRAPHS
        for number, known in enumerate(bounds_of):
            if torch.equal(known.cpu(), bounds.cpu()):
                return number
        if id(bounds) not in at:
            return None
        axes.append(Lengths(at[id(bounds)]))
        bounds_of.append(bounds)
        return len(axes) - 1

    for store, slices, shifts in stores(batch):
        for name, value in store.items():
            if name not in slices or id(value) not in at:
                continue
            axis = axis_of(slices[name])
            if axis is None:
                continue
            dim = batch.__cat_dim__(name, value, store) or 0
            shift = shifts.get(name)
            moved = shift is not None and bool(shift.any()) and id(shift) in at
            numbers = Shifted(at[id(shift)]) if moved else None
            places[at[id(value)]] = Taken(dim % max(value.dim(), 1), axis, numbers, at[id(slices[name])])
            places[at[id(slices[name])]] = Bounds(axis)
            if shift is not None and id(shift) in at:
                places[at[id(shift)]] = Shifts()
        for name, value in store.items():
            if name.endswith("ptr") and id(value) in at and f"{name[:-3]}batch" in store:
                axis, owners = axis_of(value), store[f"{name[:-3]}batch"]
                if axis is not None and id(owners) in at:
                    places[at[id(value)]] = Bounds(axis)
                    places[at[id(owners)]] = Taken(0, axis, OfRows(GRAPHS), at[id(value)])
    for place, leaf in enumerate(leaves):
        if type(leaf) is list and len(leaf) == batch.num_graphs:
            places[place] = Listed()
    return Plan(tuple(axes), tuple(places)) if axes else None


def _of_tensors(leaves: Sequence[Any]) -> Plan | None:
    """By vectors that tell which graph each node belongs to, or else by edges alone."""
    tensors = {place: leaf for place, leaf in enumerate(leaves) if isinstance(leaf, Tensor) and leaf.dim()}
    pairs = [place for place, leaf in tensors.items() if _may_be_edges(leaf)]
    owners = [place for place, leaf in tensors.items() if _tells_graphs(leaf, tensors.values())]
    owners = [place for place in owners if leaves[place][-1] == leaves[owners[0]][-1]]
    axes: list[AxisOf] = [Owners(place) for place in owners]
    places: list[Place] = [None] * len(leaves)
    for axis, place in enumerate(owners):
        places[place] = Taken(0, axis, OfRows(GRAPHS))
    if not owners:
        nodes = next((place for place, leaf in tensors.items() if leaf.is_floating_point()), None)
        if nodes is None or not pairs:
            return None
        axes.append(Blocks(nodes, pairs[0]))
    empty = (None,) * len(leaves)
    of_nodes = tuple(axes)
    for place in pairs:
        fitting = [axis for axis in range(len(of_nodes)) if Plan((*of_nodes, Ends(place, axis)), empty).layout(leaves)]
        if fitting:
            axis = min(fitting, key=lambda axis: abs(of_nodes[axis].leaf - place))  # what stands beside it
            axes.append(Ends(place, axis))
            places[place] = Taken(1, len(axes) - 1, OfRows(axis))
    layout = Plan(tuple(axes), empty).layout(leaves)
    if layout is None or (not owners and int(layout.axes[0].counts.max()) * world_size() > len(layout.axes[0])):
        return None  # no rank would have its share
    numbers = [*range(len(axes)), *([GRAPHS] if owners else [])]  # nothing has a row for each block
    sizes = {len(layout.axis(axis)): axis for axis in numbers}
    if any(
        not torch.equal(layout.axis(sizes[len(layout.axis(axis))]).owners, layout.axis(axis).owners) for axis in numbers
    ):
        return None  # what a tensor of that size holds cannot be told
    for place, leaf in tensors.items():
        if places[place] is not None:
            continue
        if leaf.dtype == torch.int64:
            bounds = (Bounds(axis) for axis in range(len(of_nodes)))
            places[place] = next((each for each in bounds if layout.has(leaf, each, leaves)), None)
        dim = next((dim for dim, size in enumerate(leaf.shape) if size in sizes), None)
        if places[place] is None and dim is not None:
            places[place] = Taken(dim, sizes[leaf.size(dim)])
    return Plan(tuple(axes), tuple(places))


def _may_be_edges(leaf: Tensor) -> bool:
    return leaf.dtype == torch.int64 and leaf.dim() == 2 and leaf.size(0) == 2


def _tells_graphs(leaf: Tensor, tensors: Iterable[Tensor]) -> bool:
    if leaf.dtype != torch.int64 or leaf.dim() != 1 or not len(leaf):
        return False
    if int(leaf[0]) or not 0 < int(leaf[-1]) < len(leaf) - 1:
        return False
    steps = leaf.diff()
    in_order = bool(((steps == 0) | (steps == 1)).all())
    return in_order and any(each is not leaf and each.size(0) == len(leaf) for each in tensors)
