"""Batches of graphs, from torch_geometric."""

from __future__ import annotations

from functools import partial
from typing import Any

import torch
import torch.nn.functional as F
from torch import Tensor, nn
from torch_geometric.data import Batch, Data
from torch_geometric.nn import GCNConv, GINConv, global_add_pool, global_mean_pool

from .table import Entry


class Convolved(nn.Module):
    def __init__(self, dropout: float) -> None:
        super().__init__()
        self.first, self.second, self.head = GCNConv(4, 8), GCNConv(8, 8), nn.Linear(8, 3)
        self.dropout = dropout

    def forward(self, x: Tensor, edge_index: Tensor, batch: Tensor) -> Tensor:
        x = F.relu(self.first(x, edge_index))
        x = F.relu(self.second(x, edge_index))
        x = F.dropout(global_mean_pool(x, batch), self.dropout, self.training)
        return self.head(x)  # type: ignore[no-any-return]


class Isomorphic(nn.Module):
    def __init__(self, dropout: float) -> None:
        super().__init__()
        self.layers = nn.ModuleList(
            GINConv(nn.Sequential(nn.Linear(i, 8), nn.BatchNorm1d(8), nn.ReLU(), nn.Linear(8, 8))) for i in (4, 8)
        )
        self.head = nn.Linear(8, 3)

    def forward(self, data: Any) -> Tensor:
        x = data.x
        for layer in self.layers:
            x = layer(x, data.edge_index)
        return self.head(global_add_pool(x, data.batch))  # type: ignore[no-any-return]


def graphs(samples: int) -> Batch:
    made = []
    for _ in range(samples):
        nodes = int(torch.randint(3, 7, ()))
        edges = torch.randint(0, nodes, (2, 2 * nodes))
        made.append(Data(x=torch.randn(nodes, 4), edge_index=edges, y=torch.randint(0, 3, (1,))))
    return Batch.from_data_list(made)


def apart(model: nn.Module, data: Any) -> Tensor:
    return F.cross_entropy(model(data.x, data.edge_index, data.batch), data.y)


def together(model: nn.Module, data: Any) -> Tensor:
    return F.cross_entropy(model(data), data.y)


entry = partial(Entry, library="torch_geometric", batch=graphs)

ENTRIES = [
    entry("GCN over batches of graphs", build=Convolved, loss=apart, dropout=True, most=1.0),
    entry("GIN over batches of graphs", build=Isomorphic, loss=together, most=0.55),
]
