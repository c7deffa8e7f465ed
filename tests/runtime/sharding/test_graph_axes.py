"""Which graph each row belongs to, and which rows a rank has."""

from __future__ import annotations

import pytest
import torch
from ddpify_runtime.sharding.graph_axes import Axis, AxisOf, Blocks, Ends, Lengths, Owned, Owners, owners_of
from torch import Tensor

from ..processes import run

OWNERS = torch.tensor([0, 0, 1, 2, 2, 2, 4])  # no row belongs to the fourth one
NODES = Axis(torch.tensor([0, 0, 1, 1, 1]), 2)
TOLD: dict[str, tuple[AxisOf, list[Tensor], list[int] | None]] = {
    "owners": (Owners(0), [torch.tensor([0, 0, 1, 2])], [0, 0, 1, 2]),
    "owners that fall": (Owners(0), [torch.tensor([0, 1, 0])], None),
    "owners that skip one": (Owners(0), [torch.tensor([0, 2])], None),
    "lengths": (Lengths(0), [torch.tensor([0, 2, 2, 3])], [0, 0, 2]),
    "lengths that fall": (Lengths(0), [torch.tensor([0, 2, 1])], None),
    "edges": (Ends(0, 0), [torch.tensor([[0, 4], [1, 2]])], [0, 1]),
    "an edge of two graphs": (Ends(0, 0), [torch.tensor([[0, 4], [1, 1]])], None),
    "an edge of no node": (Ends(0, 0), [torch.tensor([[0], [5]])], None),
    "blocks": (Blocks(0, 1), [torch.ones(6, 2), torch.tensor([[0, 3, 4], [1, 5, 4]])], [0, 0, 1, 2, 2, 2]),
    "no edges": (Blocks(0, 1), [torch.ones(6, 2), torch.ones(2, 0).long()], None),
}


@pytest.mark.parametrize("name", TOLD)
def test_of_which_graph_rows_are(name: str) -> None:
    of, leaves, expected = TOLD[name]
    found = owners_of(of, leaves, [NODES])
    assert (None if found is None else found.tolist()) == expected


def test_the_rows_of_some_graphs() -> None:
    axis = Axis(OWNERS, 5)
    assert axis.counts.tolist() == [2, 1, 3, 0, 1]
    assert axis.rows(torch.tensor([0, 3, 4])).tolist() == [0, 1, 6]


def joined() -> list[tuple[int, bool]]:
    """How many rows a rank has of several tensors, and whether those of all ranks are the whole again."""
    found = []
    for dim, whole in ((0, torch.randn(7, 2)), (1, torch.randn(2, 7, 3)), (0, torch.randn(7) > 0)):
        owned = Owned(dim, Axis(OWNERS, 5))
        part = owned.shard(whole)
        found.append((part.size(dim), torch.equal(owned.gather(part), whole)))
    return found


def test_the_rows_of_all_ranks_are_the_whole() -> None:
    assert run(2, joined) == [[(6, True)] * 3, [(1, True)] * 3]
    assert run(3, joined) == [[(2, True)] * 3, [(2, True)] * 3, [(3, True)] * 3]
