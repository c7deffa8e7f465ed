"""Batches of graphs, from torch_geometric."""

from __future__ import annotations

from functools import partial
from typing import Any

import torch
import torch.nn.functional as F
from torch import Tensor, nn
from torch_geometric.data import Batch, Data
from torch_geometric.nn import (
    GATConv,
    GCNConv,
    GINConv,
    GINEConv,
    GPSConv,
    GraphConv,
    SchNet,
    TopKPooling,
    dense_diff_pool,
    global_add_pool,
    global_max_pool,
    global_mean_pool,
)
from torch_geometric.utils import to_dense_adj, to_dense_batch

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


class Attentive(nn.Module):
    """Drops of its features, and of its attention over edges and their loops."""

    def __init__(self, dropout: float) -> None:
        super().__init__()
        self.first, self.second = GATConv(4, 4, heads=2, dropout=dropout), GATConv(8, 8, dropout=dropout)
        self.head, self.dropout = nn.Linear(8, 3), dropout

    def forward(self, data: Any) -> Tensor:
        x = F.dropout(data.x, self.dropout, self.training)
        x = F.dropout(F.elu(self.first(x, data.edge_index)), self.dropout, self.training)
        return self.head(global_mean_pool(self.second(x, data.edge_index), data.batch))  # type: ignore[no-any-return]


class Bonded(nn.Module):
    """Messages see what edges are."""

    def __init__(self, dropout: float) -> None:
        super().__init__()
        self.layers = nn.ModuleList(GINEConv(two_layers(i, 8), edge_dim=3) for i in (4, 8))
        self.head, self.dropout = nn.Linear(8, 1), nn.Dropout(dropout)

    def forward(self, data: Any) -> Tensor:
        x = data.x
        for layer in self.layers:
            x = self.dropout(F.relu(layer(x, data.edge_index, data.edge_attr)))
        return self.head(global_add_pool(x, data.batch)).squeeze(1)  # type: ignore[no-any-return]


class Transformed(nn.Module):
    """Attention over the nodes of each graph beside messages along edges."""

    def __init__(self, dropout: float) -> None:
        super().__init__()
        self.first, self.head = nn.Linear(4, 8), nn.Linear(8, 1)
        self.layer = GPSConv(8, GINEConv(two_layers(8, 8), edge_dim=3), heads=2, dropout=dropout)

    def forward(self, data: Any) -> Tensor:
        x = self.layer(self.first(data.x), data.edge_index, data.batch, edge_attr=data.edge_attr)
        return self.head(global_add_pool(x, data.batch)).squeeze(1)  # type: ignore[no-any-return]


class OfNodes(nn.Module):
    """Is not told of graphs."""

    def __init__(self, dropout: float) -> None:
        super().__init__()
        self.first, self.second, self.dropout = GCNConv(4, 8), GCNConv(8, 3), dropout

    def forward(self, x: Tensor, edge_index: Tensor) -> Tensor:
        x = F.dropout(F.relu(self.first(x, edge_index)), self.dropout, self.training)
        return self.second(x, edge_index)  # type: ignore[no-any-return]


class Pooled(nn.Module):
    """Keeps the best nodes of each graph."""

    def __init__(self, dropout: float) -> None:
        super().__init__()
        self.layer, self.pool, self.head = GraphConv(4, 8), TopKPooling(8, ratio=0.8), nn.Linear(16, 3)
        self.dropout = nn.Dropout(dropout)

    def forward(self, data: Any) -> Tensor:
        x, _, _, batch, _, _ = self.pool(F.relu(self.layer(data.x, data.edge_index)), data.edge_index, None, data.batch)
        both = torch.cat([global_max_pool(x, batch), global_mean_pool(x, batch)], 1)
        return self.head(self.dropout(both))  # type: ignore[no-any-return]


class Within(nn.Module):
    """Edges between all atoms of a molecule that are near each other."""

    def forward(self, places: Tensor, batch: Tensor) -> tuple[Tensor, Tensor]:
        pairs = (batch[:, None] == batch) & ~torch.eye(len(batch), dtype=torch.bool)
        edges = pairs.nonzero().T
        return edges, (places[edges[0]] - places[edges[1]]).norm(dim=-1)


def schnet(dropout: float) -> Any:
    return SchNet(hidden_channels=8, num_filters=8, num_interactions=1, num_gaussians=4, interaction_graph=Within())


class Energies(nn.Module):
    """Energies of molecules, and the forces on their atoms."""

    def __init__(self, dropout: float) -> None:
        super().__init__()
        self.layer, self.head = GINEConv(two_layers(4, 8), edge_dim=1), nn.Linear(8, 1)

    def forward(self, data: Any) -> tuple[Tensor, Tensor]:
        places = data.pos.requires_grad_()
        source, target = data.edge_index
        distances = (places[source] - places[target]).square().sum(1, keepdim=True)
        atoms = torch.tanh(self.layer(data.x, data.edge_index, distances))
        energies = self.head(global_add_pool(atoms, data.batch)).squeeze(1)
        return energies, -torch.autograd.grad(energies.sum(), places, create_graph=True)[0]


class Clustered(nn.Module):
    """Pools nodes in clusters, whose losses it gives beside its output."""

    def __init__(self, dropout: float) -> None:
        super().__init__()
        self.clusters, self.head = nn.Linear(4, 3), nn.Linear(4, 3)

    def forward(self, data: Any) -> tuple[Tensor, Tensor]:
        x, mask = to_dense_batch(data.x, data.batch)
        edges = to_dense_adj(data.edge_index, data.batch)
        x, _, links, entropy = dense_diff_pool(x, edges, self.clusters(x), mask)
        return self.head(x.mean(1)), links + entropy


def two_layers(size: int, hidden: int) -> nn.Sequential:
    return nn.Sequential(nn.Linear(size, hidden), nn.Tanh(), nn.Linear(hidden, hidden))


def graphs(samples: int) -> Batch:
    made = []
    for _ in range(samples):
        nodes = int(torch.randint(3, 7, ()))
        edges = torch.randint(0, nodes, (2, 2 * nodes))
        made.append(Data(x=torch.randn(nodes, 4), edge_index=edges, y=torch.randint(0, 3, (1,))))
    return Batch.from_data_list(made)


def molecules(samples: int) -> Batch:
    made = []
    for _ in range(samples):
        atoms = int(torch.randint(3, 7, ()))
        edges = torch.randint(0, atoms, (2, 2 * atoms))
        given = Data(x=torch.randn(atoms, 4), edge_index=edges, edge_attr=torch.randn(2 * atoms, 3), y=torch.randn(1))
        given.z, given.pos, given.kinds = torch.randint(1, 9, (atoms,)), torch.randn(atoms, 3), torch.arange(atoms) % 3
        made.append(given)
    return Batch.from_data_list(made)


def apart(model: nn.Module, data: Any) -> Tensor:
    return F.cross_entropy(model(data.x, data.edge_index, data.batch), data.y)


def together(model: nn.Module, data: Any) -> Tensor:
    return F.cross_entropy(model(data), data.y)


def of_each_node(model: nn.Module, data: Any) -> Tensor:
    return F.cross_entropy(model(data.x, data.edge_index), data.kinds)


def regressed(model: nn.Module, data: Any) -> Tensor:
    return F.mse_loss(model(data), data.y)


def of_atoms(model: nn.Module, data: Any) -> Tensor:
    return F.mse_loss(model(data.z, data.pos, data.batch).squeeze(1), data.y)


def of_forces(model: nn.Module, data: Any) -> Tensor:
    energies, forces = model(data)
    loss: Tensor = F.mse_loss(energies, data.y) + forces.square().mean()
    return loss


def of_clusters(model: nn.Module, data: Any) -> Tensor:
    output, losses = model(data)
    loss: Tensor = F.cross_entropy(output, data.y) + losses
    return loss


entry = partial(Entry, library="torch_geometric", batch=graphs)

ENTRIES = [
    entry("GCN over batches of graphs", build=Convolved, loss=apart, dropout=True, cheap=True),
    entry("GIN over batches of graphs", build=Isomorphic, loss=together),
    entry("GAT", build=Attentive, loss=together, dropout=True),
    entry("GINE, 3 ranks", build=Bonded, batch=molecules, loss=regressed, dropout=True, ranks=3, rate=1e-3),
    entry("GPS", build=Transformed, batch=molecules, loss=regressed, dropout=True, rate=1e-3),
    entry(
        "GCN of nodes, from edges alone",
        build=OfNodes,
        batch=molecules,
        loss=of_each_node,
        dropout=True,
        most=0.6,
    ),
    entry("Top-k pooling", build=Pooled, loss=together, dropout=True),
    entry("SchNet", build=schnet, batch=molecules, loss=of_atoms, rate=1e-3),
    entry("Energies and forces", build=Energies, batch=molecules, loss=of_forces),
    entry("DiffPool", build=Clustered, loss=of_clusters, double=False, tolerance=1e-4, most=1.0),
]
