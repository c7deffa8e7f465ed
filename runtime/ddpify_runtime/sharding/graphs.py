"""Batches of graphs, whose samples have rows of their own number: all nodes in one tensor, all edges in another.

Each graph's rows lie in several tensors (its nodes, its edges), each along an axis of its own; some of them hold
numbers of rows, as edges do of the nodes that they join. The part of a rank is a batch of its graphs
`[rank::world_size]`: their rows in the order of the whole, with the numbers that these have there. graph_axes.py tells
which graph a row belongs to, graph_batches.py what lies where.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from typing import Any, NamedTuple, TypeAlias

import torch
from torch import Tensor

from . import collectives
from .collectives import AnyPlace, Rows, split
from .graph_axes import Axis, AxisOf, Lengths, Owned, owners_of

GRAPHS = -1  # the axis along which each graph has one row


class Segment(NamedTuple):
    """Where the graphs lie in a tensor: along `dim`, as along an axis."""

    dim: int
    axis: int


class OfRows(NamedTuple):
    """Numbers are those of the rows of an axis; of GRAPHS, they tell which graph each row belongs to."""

    axis: int


class Shifted(NamedTuple):
    """Numbers are shifted, for each graph, by what an input leaf says."""

    leaf: int


class Taken(NamedTuple):
    """A tensor of which a part has the rows of its graphs. numbers: what its values are the numbers of, if they are.
    bounds: the leaf that says where the rows of each graph end, if one does.
    """

    dim: int
    axis: int
    numbers: OfRows | Shifted | None = None
    bounds: int | None = None


class Bounds(NamedTuple):
    """A tensor that says where the rows of each graph end."""

    axis: int


class Shifts(NamedTuple):
    """A tensor that says by how much numbers are shifted in each graph."""


class Count(NamedTuple):
    """The number of rows of an axis."""

    axis: int


class Listed(NamedTuple):
    """A list with an entry for each graph."""


Place: TypeAlias = Taken | Bounds | Shifts | Count | Listed | None


class OwnNumbers(NamedTuple):
    """In place of where the samples lie in what is drawn: each rank draws for its own, of a size of its own."""


AnyRows: TypeAlias = Rows | Segment
AnyDrawn: TypeAlias = AnyRows | OwnNumbers


@dataclass(frozen=True)
class Plan:
    """How an input holds graphs: its axes, and what is at each leaf. first: the leaf that says how many there are."""

    axes: tuple[AxisOf, ...]
    places: tuple[Place, ...]
    _last: list[Any] = field(default_factory=list, compare=False, repr=False)  # an input and its layout

    @property
    def is_told(self) -> bool:
        """Whether the input says where its graphs lie."""
        return isinstance(self.axes[0], Lengths)

    @property
    def first(self) -> int:
        return self.axes[0].leaf

    def layout(self, leaves: Sequence[Any]) -> Layout | None:
        """Where the graphs lie in these leaves; None if not as planned."""
        if not self._last or self._last[0] is not leaves:
            self._last[:] = leaves, self._layout(leaves)
        return self._last[1]  # type: ignore[no-any-return]

    def _layout(self, leaves: Sequence[Any]) -> Layout | None:
        axes: list[Axis] = []
        for of in self.axes:
            owners = owners_of(of, leaves, axes)
            if owners is None:
                return None
            if axes:
                total = axes[0].total
            else:
                total = len(leaves[of.leaf]) - 1 if isinstance(of, Lengths) else int(owners[-1]) + 1
            axes.append(Axis(owners, total))
            if len(axes[-1].counts) > total:
                return None
        layout = Layout(axes)
        fits = all(layout.has(leaf, place, leaves) for leaf, place in zip(leaves, self.places, strict=True))
        return layout if fits else None


class Layout:
    """Where graphs lie in an input."""

    def __init__(self, axes: Sequence[Axis]) -> None:
        self.axes, self.total = axes, axes[0].total
        self.graphs = Axis(torch.arange(self.total, device=axes[0].owners.device), self.total)

    def axis(self, number: int) -> Axis:
        return self.graphs if number == GRAPHS else self.axes[number]

    def has(self, leaf: Any, place: Place, leaves: Sequence[Any]) -> bool:
        """Whether a leaf is what its place says."""
        if isinstance(place, Count):
            return bool(leaf == len(self.axis(place.axis)))
        if isinstance(place, Bounds):
            same = len(leaf) == self.total + 1 and torch.equal(leaf.diff().cpu(), self.axis(place.axis).counts.cpu())
            return bool(same)
        if isinstance(place, Listed):
            return len(leaf) == self.total
        if not isinstance(place, Taken):
            return True
        axis = self.axis(place.axis)
        if place.bounds is not None and not torch.equal(leaves[place.bounds].diff().cpu(), axis.counts.cpu()):
            return False
        if place.dim >= leaf.dim() or leaf.size(place.dim) != len(axis):
            return False
        if isinstance(place.numbers, Shifted) and not _are_shifted(leaf, place.dim, leaves[place.numbers.leaf], axis):
            return False
        # The largest of the numbers of its graphs tells a rank how many there are (forward/row_numbers.py).
        return place.numbers != OfRows(GRAPHS) or bool(axis.counts.all())

    def is_spread(self) -> bool:
        """Whether more than one rank has rows along each axis."""
        ranks = collectives.world_size()
        return all(len((axis.owners % ranks).unique()) > 1 for axis in self.axes)

    def own(
        self, leaves: Sequence[Any], places: Sequence[Place], on_enter: Callable[[], None] | None = None
    ) -> list[Any]:
        """This rank's part of an input; with gradients where `on_enter`, as for `split`, is given."""
        graphs = torch.arange(collectives.own_rank(), self.total, collectives.world_size(), device="cpu")
        return self.part(leaves, places, graphs, on_enter)

    def part(
        self,
        leaves: Sequence[Any],
        places: Sequence[Place],
        graphs: Tensor,
        on_enter: Callable[[], None] | None = None,
    ) -> list[Any]:
        """The part of an input that has some of its graphs.

        Args:
            graphs: their numbers, in order. on_enter: as for `own`.
        """
        part = _Part(self, graphs)
        values = []
        for leaf, place in zip(leaves, places, strict=True):
            if on_enter is not None and isinstance(place, Taken) and leaf.requires_grad:
                values.append(split(leaf, self.total, Owned(place.dim, self.axis(place.axis)), on_enter))
            else:
                values.append(part.of(leaf, place, leaves))
        return values


def at(layout: Layout | None, rows: AnyDrawn) -> AnyPlace:
    """A place as a collective is told it; layout: where graphs lie, if there are any."""
    if isinstance(rows, Rows):
        return rows
    assert layout is not None and isinstance(rows, Segment)
    return Owned(rows.dim, layout.axis(rows.axis))


class _Part:
    """Some graphs of a batch."""

    def __init__(self, layout: Layout, graphs: Tensor) -> None:
        self.layout, self.graphs = layout, graphs
        self._rows: dict[int, Tensor] = {}

    def rows(self, axis: int) -> Tensor:
        if axis not in self._rows:
            self._rows[axis] = self.layout.axis(axis).rows(self.graphs)
        return self._rows[axis]

    def of(self, leaf: Any, place: Place, leaves: Sequence[Any]) -> Any:
        if isinstance(place, Count):
            return len(self.rows(place.axis))
        if isinstance(place, Bounds):
            counts = self.layout.axis(place.axis).counts.to(leaf.device)[self.graphs.to(leaf.device)]
            return torch.cat([leaf[:1], counts.cumsum(0).to(leaf.dtype)])
        if isinstance(place, Listed):
            return [leaf[graph] for graph in self.graphs.tolist()]
        if isinstance(place, Shifts):
            return self._shifts(leaf)
        if not isinstance(place, Taken):
            return leaf
        rows = self.rows(place.axis).to(leaf.device)
        taken = leaf.index_select(place.dim, rows)
        if isinstance(place.numbers, OfRows):
            own = self.rows(place.numbers.axis)
            numbers = own.new_zeros(len(self.layout.axis(place.numbers.axis)))
            numbers[own] = torch.arange(len(own), device=own.device)
            return numbers.to(leaf.device, leaf.dtype)[taken]
        if isinstance(place.numbers, Shifted):
            shifts = leaves[place.numbers.leaf]
            before = torch.zeros_like(shifts)
            before[self.graphs.to(shifts.device)] = shifts[self.graphs.to(shifts.device)] - self._shifts(shifts)
            of_rows = before[self.layout.axis(place.axis).owners[self.rows(place.axis)].to(before.device)]
            return taken - _along(of_rows, taken, place.dim)
        return taken

    def _shifts(self, shifts: Tensor) -> Tensor:
        """By how much the numbers of each of these graphs are shifted among them."""
        each = torch.cat([shifts.diff(dim=0), torch.zeros_like(shifts[:1])])[
            self.graphs.to(shifts.device)
        ]  # the last one shifts none
        return each.cumsum(0) - each


def _are_shifted(numbers: Tensor, dim: int, shifts: Tensor, axis: Axis) -> bool:
    """Whether the rows of each graph have numbers from its shift on to that of the next one: none was put elsewhere."""
    owners = axis.owners.to(shifts.device)
    if bool((numbers < _along(shifts[owners], numbers, dim)).any()):
        return False
    last = (owners == axis.total - 1).to(numbers.device)
    ends = _along(shifts[(owners + 1).clamp(max=axis.total - 1)], numbers, dim)
    return bool(((numbers < ends) | _along(last, numbers, dim)).all())


def _along(shifts: Tensor, values: Tensor, dim: int) -> Tensor:
    """Shifts of each row, as they are added to values whose rows lie along a dimension."""
    if shifts.dim() == 1:
        shifts = shifts.view([-1 if each == dim else 1 for each in range(values.dim())])
    else:  # of each row one with as many dimensions as what one graph has, and a single row there
        shifts = shifts.squeeze(dim + 1).movedim(0, dim)
    return shifts.to(values.device)
