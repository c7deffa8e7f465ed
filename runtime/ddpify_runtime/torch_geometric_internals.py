"""The private names of torch_geometric, all in one place: how its batches of graphs are taken apart (2.3 to 2.8)."""

from __future__ import annotations

import sys
from collections.abc import Iterator
from typing import Any

# Of a store, by its module: how many nodes each graph of a batch has, beside how many there are in all.
NODES_OF_EACH = "torch_geometric.data.storage", "_num_nodes"


def is_batch(value: Any) -> bool:
    """Whether a value is what its DataLoader gives."""
    data = sys.modules.get("torch_geometric.data")
    return data is not None and isinstance(value, data.Batch)


def stores(batch: Any) -> Iterator[tuple[Any, dict[str, Any], dict[str, Any]]]:
    """What a batch keeps of each kind of nodes and edges, by name.

    Yields:
        A store; for what it joined, where that of each graph ends, and by how much its numbers were shifted.
    """
    bounds, shifts = getattr(batch, "_slice_dict", None) or {}, getattr(batch, "_inc_dict", None) or {}
    for store in batch.stores:
        key = store._key
        yield (store, bounds, shifts) if key is None else (store, bounds.get(key, {}), shifts.get(key, {}))
