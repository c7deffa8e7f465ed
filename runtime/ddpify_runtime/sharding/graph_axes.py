"""Which graph each row of a batch belongs to, along an axis: of nodes, of edges, of anything else that graphs have."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any, NamedTuple, TypeAlias

import torch
from torch import Tensor

from . import collectives


class Owners(NamedTuple):
    """An axis whose rows belong to the graphs that a leaf names."""

    leaf: int


class Blocks(NamedTuple):
    """An axis of nodes, in blocks that no edge joins: whatever graphs they are, each is apart from the others."""

    leaf: int
    edges: int


class Ends(NamedTuple):
    """An axis whose rows belong to the graphs of the nodes that they join, of another axis."""

    leaf: int
    nodes: int


class Lengths(NamedTuple):
    """An axis whose rows lie as a leaf says."""

    leaf: int


AxisOf: TypeAlias = Owners | Blocks | Ends | Lengths


class Axis:
    """Rows of which each belongs to one of `total` graphs."""

    def __init__(self, owners: Tensor, total: int) -> None:
        self.owners, self.total = owners, total
        self.counts = torch.bincount(owners, minlength=total)
        self._rows: dict[Any, Tensor] = {}

    def __len__(self) -> int:
        return len(self.owners)

    def rows(self, graphs: Tensor) -> Tensor:
        """The rows of some graphs, in order."""
        chosen = torch.zeros(self.total, dtype=torch.bool, device=self.owners.device)
        chosen[graphs.to(self.owners.device)] = True
        return chosen[self.owners].nonzero().flatten()

    def of_rank(self, rank: int, device: torch.device) -> Tensor:
        """The rows of the graphs of a rank."""
        ranks = collectives.world_size()
        key = rank, ranks, device
        if key not in self._rows:
            self._rows[key] = self.rows(torch.arange(rank, self.total, ranks, device="cpu")).to(device)
        return self._rows[key]


@dataclass(frozen=True)
class Owned:
    """Where the graphs lie in a tensor, along `dim`; what a collective is told instead of Rows."""

    dim: int
    axis: Axis

    def shard(self, tensor: Tensor) -> Tensor:
        """This rank's rows."""
        return tensor.index_select(self.dim, self.axis.of_rank(collectives.own_rank(), tensor.device))

    def gather(self, local: Tensor) -> Tensor:
        """The rows of all ranks, in the order of the whole; a collective."""
        rows = [self.axis.of_rank(rank, local.device) for rank in range(collectives.world_size())]
        flat = local.detach().movedim(self.dim, 0).contiguous()
        most = max(map(len, rows))
        if len(flat) < most:
            flat = torch.cat([flat, flat.new_zeros(most - len(flat), *flat.shape[1:])])
        sent = flat.to(torch.uint8) if flat.dtype == torch.bool else flat
        parts = collectives.gather_parts(sent)
        whole = sent.new_empty(len(self.axis), *sent.shape[1:])
        for own, part in zip(rows, parts, strict=True):
            whole[own] = part[: len(own)]
        return whole.to(local.dtype).movedim(0, self.dim).contiguous()


def owners_of(of: AxisOf, leaves: Sequence[Any], axes: Sequence[Axis]) -> Tensor | None:
    """Of which graph each row of an axis is; None if that is not told."""
    if isinstance(of, Lengths):
        lengths = leaves[of.leaf].diff()
        graphs = torch.arange(len(lengths), device=lengths.device)
        return graphs.repeat_interleave(lengths) if bool((lengths >= 0).all()) else None
    values: Tensor = leaves[of.leaf].detach()
    if isinstance(of, Ends):
        nodes = axes[of.nodes].owners
        if values.numel() and not 0 <= int(values.min()) <= int(values.max()) < len(nodes):
            return None
        first, second = nodes[values]
        return first if torch.equal(first, second) else None
    if isinstance(of, Blocks):
        return _blocks(leaves[of.edges].detach(), len(values))
    steps = values.diff()
    in_order = len(values) and int(values[0]) == 0 and bool(((steps == 0) | (steps == 1)).all())
    return values if in_order else None


def _blocks(edges: Tensor, nodes: int) -> Tensor | None:
    """Of which block each node is, where blocks are as small as they can be."""
    if not edges.numel() or not 0 <= int(edges.min()) <= int(edges.max()) < nodes:
        return None
    joined = edges.new_zeros(nodes + 1)  # how many edges join a node, or one before it, with this one or one behind it
    joined.index_add_(0, edges.amin(0) + 1, torch.ones_like(edges[0]))
    joined.index_add_(0, edges.amax(0) + 1, -torch.ones_like(edges[0]))
    return (joined.cumsum(0)[:-1] == 0).cumsum(0) - 1
