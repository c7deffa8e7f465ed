"""Which tensors are numbers of rows."""

from __future__ import annotations

from collections.abc import Callable

import pytest
import torch
from ddpify_runtime.forward.row_numbers import RowNumbers
from torch import Tensor

EDGES = torch.tensor([[0, 1, 4], [1, 3, 2]])
SAME: dict[str, Callable[[Tensor], Tensor]] = {
    "itself": lambda edges: edges,
    "one end": lambda edges: numbers_of(edges)(Tensor.__getitem__, edges, 0),
    "of several": lambda edges: numbers_of(edges)(torch.cat, [edges, edges], 1),
    "and one": lambda edges: numbers_of(edges)(Tensor.__add__, edges, 1),
}
KNOWN: dict[int, RowNumbers] = {}


def numbers_of(edges: Tensor) -> Callable[..., Tensor]:
    known = KNOWN.setdefault(id(edges), RowNumbers([edges]))
    return lambda func, *args: known.follow(func, args, func(*args))


@pytest.mark.parametrize("name", SAME)
def test_the_largest_is_a_size(name: str) -> None:
    known = KNOWN.setdefault(id(EDGES), RowNumbers([EDGES]))
    assert known.largest(torch.max, (SAME[name](EDGES),), {})


def test_what_is_none() -> None:
    known = RowNumbers([EDGES])
    for other in (EDGES.clone(), known.follow(torch.cat, ([EDGES, EDGES.clone()], 1), torch.cat([EDGES, EDGES], 1))):
        assert not known.largest(torch.max, (other,), {})
    assert not known.largest(torch.max, (EDGES, 0), {}) and not known.largest(torch.min, (EDGES,), {})


def test_each_end_of_edges_and_the_last_number() -> None:
    known = RowNumbers([EDGES])
    source, target = known.follow(Tensor.__iter__, (EDGES,), iter(EDGES))
    last = known.follow(Tensor.__getitem__, (target, -1), target[-1])
    assert known.largest(Tensor.max, (source,), {}) and known.is_one(last) and not known.is_one(target)


def test_what_is_written_to_a_new_tensor() -> None:
    known, index = RowNumbers([EDGES]), torch.arange(3)
    made = torch.zeros(3, dtype=torch.int64)
    assert known.follow(Tensor.scatter_, (made, 0, index, EDGES[0]), made) is made and not known.is_one(made[0])
    source = known.follow(Tensor.__getitem__, (EDGES, 0), EDGES[0])
    known.follow(Tensor.scatter_, (made, 0, index, source), made)
    assert known.largest(torch.max, (made,), {})
