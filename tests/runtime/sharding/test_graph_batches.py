"""What is seen in an input that may hold graphs."""

from __future__ import annotations

from typing import Any

import pytest
import torch
from ddpify_runtime.sharding import structure
from ddpify_runtime.sharding.graph_axes import Blocks, Ends, Owners
from ddpify_runtime.sharding.graph_batches import plans
from ddpify_runtime.sharding.graphs import (
    GRAPHS,
    Bounds,
    Count,
    Listed,
    OfRows,
    Plan,
    Shifted,
    Taken,
)

X, BATCH = torch.ones(7, 3), torch.tensor([0, 0, 1, 1, 1, 2, 2])
EDGES = torch.tensor([[0, 2, 3, 6, 2], [1, 4, 2, 5, 2]])


@pytest.fixture(autouse=True)
def _alone(monkeypatch: pytest.MonkeyPatch) -> None:
    """Two ranks, without a group: nothing is sent."""
    monkeypatch.setattr("ddpify_runtime.sharding.graph_batches.world_size", lambda: 2)


def seen(*args: Any, **kwargs: Any) -> list[Plan]:
    return [*plans(*structure.flatten_call(args, kwargs))]


def test_nodes_edges_and_rows_of_graphs() -> None:
    ends, labels = torch.tensor([0, 2, 5, 7]), torch.tensor([5, 1, 0])
    counted, plain = seen(X, EDGES, BATCH, ends, labels, torch.ones(5, 2), size=3)
    nodes, edges = Taken(0, 0), Taken(1, 1, OfRows(0))
    places = (nodes, edges, Taken(0, 0, OfRows(GRAPHS)), Bounds(0), Taken(0, GRAPHS), Taken(0, 1))
    assert plain.axes == counted.axes == (Owners(2), Ends(1, 0))
    assert (counted.places, plain.places) == ((*places, Count(GRAPHS)), (*places, None))


def test_edges_alone_show_blocks() -> None:
    (plan,) = seen(torch.ones(8, 3), EDGES)
    assert plan.axes == (Blocks(0, 1), Ends(1, 0)) and plan.places == (Taken(0, 0), Taken(1, 1, OfRows(0)))
    layout = plan.layout([torch.ones(8, 3), EDGES])
    assert layout is not None and layout.axes[0].owners.tolist() == [0, 0, 1, 1, 1, 2, 2, 3]


def test_two_kinds_of_nodes() -> None:
    others, edges = torch.tensor([0, 1, 1, 2]), torch.tensor([[1, 3], [2, 3]])
    plan = seen(X, EDGES, BATCH, torch.ones(4, 3), edges, others)[-1]
    assert plan.axes == (Owners(2), Owners(5), Ends(1, 0), Ends(4, 1))


NONE: dict[str, tuple[Any, ...]] = {
    "labels": (X, torch.tensor([0, 2, 1, 1, 0, 1, 0])),
    "labels that do not begin with 0": (X, BATCH + 1),
    "labels that skip one": (X, BATCH * 2),
    "places": (X, torch.arange(7)),
    "words alone": (torch.randint(0, 9, (4, 5)),),
    "one graph": (X, torch.tensor([[0, 1, 2, 3, 4, 5], [1, 2, 3, 4, 5, 6]])),
    "a graph that is nearly all": (X, torch.tensor([[0, 1, 2, 3], [1, 2, 3, 4]])),
    "as many edges as nodes, of other graphs": (X, torch.cat([EDGES, EDGES[:, :2]], 1), BATCH),
}


@pytest.mark.parametrize("name", NONE)
def test_no_graphs(name: str) -> None:
    assert not seen(*NONE[name])


def test_a_batch_of_torch_geometric() -> None:
    data = pytest.importorskip("torch_geometric.data", reason="pip install '.[models]'")
    sizes = (3, 4, 2)
    made = [
        data.Data(x=torch.ones(size, 2), edge_index=torch.zeros(2, 3).long(), y=torch.ones(1), name=f"a{size}")
        for size in sizes
    ]
    batch = data.Batch.from_data_list(made)
    leaves, form = structure.flatten_call((batch,), {})
    plan = next(plans(leaves, form))
    where = {id(leaf): place for leaf, place in zip(leaves, plan.places, strict=True)}
    at: dict[str, Any] = {name: where[id(value)] for name, value in batch.to_dict().items()}
    assert at["x"] == Taken(0, 0, None, at["x"].bounds) and at["ptr"] == Bounds(0)
    assert isinstance(at["edge_index"].numbers, Shifted) and at["edge_index"].dim == 1
    assert at["y"].axis == GRAPHS and at["batch"].numbers == OfRows(GRAPHS) and at["name"] == Listed()
    layout = plan.layout(leaves)
    assert layout is not None
    args, _ = structure.unflatten(layout.part(leaves, plan.places, torch.tensor([0, 2])), form)
    expected = data.Batch.from_data_list([made[0], made[2]])
    assert args[0].num_graphs == 2 and args[0].name == ["a3", "a2"]
    for name in ("x", "edge_index", "y", "batch", "ptr"):
        assert torch.equal(args[0][name], expected[name])
    assert [each.num_nodes for each in args[0].to_data_list()] == [3, 2]


def test_edges_that_were_put_elsewhere_do_not_lie_as_told() -> None:
    data = pytest.importorskip("torch_geometric.data", reason="pip install '.[models]'")
    made = [data.Data(x=torch.ones(3, 2), edge_index=torch.tensor([[0, 1, 2], [1, 2, 0]])) for _ in range(3)]
    leaves, form = structure.flatten_call((data.Batch.from_data_list(made),), {})
    plan = next(plans(leaves, form))
    place = next(i for i, each in enumerate(plan.places) if isinstance(each, Taken) and each.numbers)
    for order, fits in ([1, 2, 0, 3, 4, 5, 6, 7, 8], True), ([0, 1, 3, 2, 4, 5, 6, 7, 8], False):
        moved = [*leaves[:place], leaves[place][:, order], *leaves[place + 1 :]]
        assert (plan.layout(moved) is not None) == fits
