"""What batches of torch_geometric keep of their graphs."""

from __future__ import annotations

import pytest
import torch
from ddpify_runtime.torch_geometric_internals import NODES_OF_EACH, is_batch, stores

data = pytest.importorskip("torch_geometric.data", reason="pip install '.[models]'")


def test_a_batch_says_where_its_graphs_lie() -> None:
    made = [data.Data(x=torch.ones(size, 2), edge_index=torch.zeros(2, 3).long()) for size in (3, 4)]
    batch = data.Batch.from_data_list(made)
    assert is_batch(batch) and not is_batch(made[0])
    ((store, bounds, shifts),) = stores(batch)
    assert "x" in store and bounds["x"].tolist() == [0, 3, 7] and shifts["edge_index"].flatten().tolist() == [0, 3]


def test_a_batch_of_several_kinds_of_nodes_says_so_of_each() -> None:
    made = [data.HeteroData({"one": {"x": torch.ones(size, 2)}, "other": {"x": torch.ones(1, 2)}}) for size in (3, 4)]
    batch = data.Batch.from_data_list(made)
    found = {len(store["x"]): bounds["x"].tolist() for store, bounds, _ in stores(batch) if "x" in store}
    assert found == {7: [0, 3, 7], 2: [0, 1, 2]}


def test_how_many_nodes_each_graph_has() -> None:
    batch = data.Batch.from_data_list([data.Data(edge_index=torch.zeros(2, 3).long(), num_nodes=n) for n in (3, 4)])
    module, name = NODES_OF_EACH
    (store,) = batch.stores
    assert type(store).__module__ == module and vars(store)[name] == [3, 4]
