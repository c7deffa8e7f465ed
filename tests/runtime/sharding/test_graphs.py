"""Batches of graphs are divided by graphs, however they are given, and train what one process trains."""

from __future__ import annotations

import warnings
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

import pytest
import torch
import torch.nn.functional as F
from ddpify_runtime import DistributedDataParallel
from torch import Tensor, nn

from ..processes import run


@dataclass
class Graphs:
    """Of 3 to 6 nodes each. batch: which graph a node belongs to. lengths: where the nodes of each end."""

    x: Tensor
    edges: Tensor
    weights: Tensor
    batch: Tensor
    ends: Tensor
    y: Tensor

    @property
    def count(self) -> int:
        return len(self.y)


def graphs(count: int) -> Graphs:
    sizes = torch.randint(3, 7, (count,))
    ends = torch.cat([torch.zeros(1, dtype=torch.int64), sizes.cumsum(0)])
    edges = [start + torch.randint(0, int(size), (2, int(size) + 2)) for start, size in zip(ends, sizes, strict=False)]
    all_edges = torch.cat(edges, 1)
    all_edges = all_edges[:, torch.randperm(all_edges.size(1))]  # in any order
    batch = torch.arange(count).repeat_interleave(sizes)
    x, weights = torch.randn(len(batch), 4).double(), torch.rand(all_edges.size(1), 1).double()
    return Graphs(x, all_edges, weights, batch, ends, torch.randint(0, 3, (count,)))


class Passes(nn.Module):
    """Messages along edges; a row for each node."""

    def __init__(self) -> None:
        super().__init__()
        self.first, self.second, self.norm = nn.Linear(4, 6), nn.Linear(6, 6), nn.BatchNorm1d(6)
        self.head = nn.Linear(6, 3)

    def messages(self, x: Tensor, edges: Tensor, weights: Any = 1.0) -> Tensor:
        for layer in (self.first, self.second):
            x = layer(x)
            source, target = edges
            x = torch.tanh(x.index_add(0, target, x[source] * weights))
        return x

    def nodes(self, x: Tensor, edges: Tensor, weights: Any = 1.0) -> Tensor:
        return F.dropout(self.norm(self.messages(x, edges, weights)), 0.3)


class ByVector(Passes):
    def forward(self, x: Tensor, edges: Tensor, batch: Tensor) -> Tensor:
        nodes = self.nodes(x, edges)
        sums = nodes.new_zeros(int(batch.max()) + 1, 6).index_add(0, batch, nodes)
        return self.head(sums)  # type: ignore[no-any-return]


class ByCount(Passes):
    """Is told how many graphs there are, and where they end; the last one's number is read, as in OGB's examples."""

    def forward(self, x: Tensor, edges: Tensor, weights: Tensor, batch: Tensor, ends: Tensor, count: int) -> Tensor:
        assert count == int(batch[-1]) + 1 == len(ends) - 1
        nodes = self.nodes(x, edges, weights)
        sums = nodes.new_zeros(count, 6).index_add(0, batch, nodes)
        return self.head(sums / ends.diff()[:, None])  # type: ignore[no-any-return]


class Whole(Passes):
    """Is given everything in one object, and returns rows of graphs, of nodes and of edges."""

    def forward(self, given: Graphs) -> tuple[Tensor, Tensor, Tensor]:
        nodes = self.nodes(given.x, given.edges, given.weights)
        sums = nodes.new_zeros(given.count, 6).index_add(0, given.batch, nodes)
        return self.head(sums), nodes, nodes[given.edges[0]] * nodes[given.edges[1]]


class OfNodes(Passes):
    """Is not told of graphs."""

    def forward(self, x: Tensor, edges: Tensor) -> Tensor:
        return self.head(self.nodes(x, edges))  # type: ignore[no-any-return]


class Forces(Passes):
    """Differentiates by the samples in its forward."""

    def forward(self, x: Tensor, edges: Tensor, batch: Tensor) -> tuple[Tensor, Tensor]:
        x.requires_grad_()
        energies = self.messages(x, edges).sum(1)
        forces = torch.autograd.grad(energies.sum(), x, create_graph=True)[0]
        return energies.new_zeros(int(batch.max()) + 1).index_add(0, batch, energies), forces


class OverAllEdges(Passes):
    """Messages have shares of one, all together."""

    def forward(self, x: Tensor, edges: Tensor, batch: Tensor) -> Tensor:
        nodes = self.messages(x, edges, torch.softmax(x[edges[0]].sum(1, keepdim=True), 0))
        return self.head(nodes.new_zeros(int(batch.max()) + 1, 6).index_add(0, batch, nodes))  # type: ignore[no-any-return]


class Longest(Passes):
    """Pads the nodes of all graphs to the largest of them, and sees the padding."""

    def forward(self, x: Tensor, edges: Tensor, batch: Tensor) -> Tensor:
        nodes = self.nodes(x, edges)
        sizes = torch.zeros(int(batch.max()) + 1, dtype=torch.int64).index_add(0, batch, torch.ones_like(batch))
        place = torch.arange(len(batch)) - (sizes.cumsum(0) - sizes)[batch]
        padded = nodes.new_zeros(len(sizes), int(sizes.max()), 6).index_put((batch, place), nodes)
        return self.head(padded.mean(1))  # type: ignore[no-any-return]


Loss = Callable[[Any, Graphs], Tensor]


def of_forces(model: Any, given: Graphs) -> Tensor:
    energies, forces = model(given.x.clone(), given.edges, given.batch)
    return (energies - given.y).square().mean() + forces.square().sum()  # type: ignore[no-any-return]


def of_all(model: Any, given: Graphs) -> Tensor:
    output, nodes, edges = model(given)
    loss: Tensor = F.cross_entropy(output, given.y) + nodes.square().mean() * edges.abs().mean()
    return loss


CASES: dict[str, tuple[Callable[[], nn.Module], Loss]] = {
    "by vector": (ByVector, lambda model, given: F.cross_entropy(model(given.x, given.edges, given.batch), given.y)),
    "by count": (
        ByCount,
        lambda model, given: F.cross_entropy(
            model(given.x, given.edges, given.weights, given.batch, given.ends, given.count), given.y
        ),
    ),
    "in an object": (Whole, of_all),
    "of nodes": (OfNodes, lambda model, given: model(given.x, given.edges).square().mean()),
    "forces": (Forces, of_forces),
    "padded": (Longest, lambda model, given: F.cross_entropy(model(given.x, given.edges, given.batch), given.y)),
}


def across(given: Graphs) -> Graphs:
    """With an edge from the first graph to the last one: they are no samples any more."""
    given.edges[0, 0], given.edges[1, 0] = 0, len(given.x) - 1
    return given


def with_an_empty_one(given: Graphs) -> Graphs:
    given.batch = given.batch + (given.batch > 2)
    given.y = torch.cat([given.y, given.y[:1]])
    given.ends = torch.cat([given.ends[:4], given.ends[3:]])
    return given


def without_edges(given: Graphs) -> Graphs:
    given.edges = given.edges[:, :0]
    return given


def with_edges_in_the_last_ones(given: Graphs) -> Graphs:
    given.edges = given.edges[:, given.batch[given.edges[0]] >= given.count - 2]
    return given


EDGES = {"none": without_edges, "in the last ones": with_edges_in_the_last_ones}


def mixed(edges: str) -> list[Tensor]:
    """The parameters after each step, where a trial on few graphs would see nothing that mixes them."""
    torch.manual_seed(0)
    model: Any = DistributedDataParallel(OverAllEdges().double())
    optimizer = torch.optim.SGD(model.parameters(), lr=0.1)
    history = []
    for step in range(3):
        given = graphs(12)
        given = EDGES[edges](given) if step == 0 or edges != "none" else given
        optimizer.zero_grad()
        F.cross_entropy(model(given.x, given.edges, given.batch), given.y).backward()
        optimizer.step()
        history.append(torch.cat([p.detach().flatten() for p in model.parameters()]))
    return history


def train(name: str, change: str = "") -> tuple[list[Tensor], list[int], list[str]]:
    """The parameters after each step, the rows that the first layer got in each, and what was said."""
    torch.manual_seed(0)
    build, loss_of = CASES[name]
    model: Any = DistributedDataParallel(build().double())
    optimizer = torch.optim.SGD(model.parameters(), lr=0.1)
    rows: list[int] = []
    model.first.register_forward_pre_hook(_Noting(rows))
    history, seen = [], []
    with warnings.catch_warnings(record=True) as said:
        warnings.simplefilter("always")
        for step, count in enumerate((12, 12, 7, 12, 2, 12)):
            given = graphs(count)
            if step > 2 and change:
                given = {"across": across, "empty": with_an_empty_one}[change](given)
            rows.clear()
            optimizer.zero_grad()
            loss_of(model, given).backward()
            optimizer.step()
            seen.append(rows[-1])
            history.append(torch.cat([p.detach().flatten() for p in model.parameters()]))
    return history, seen, [str(each.message) for each in said if "ddpify" in str(each.message)]


class _Noting:
    """Of torch's own, as far as can be seen: no hook of the script's."""

    def __init__(self, rows: list[int]) -> None:
        self.rows = rows

    def __call__(self, module: nn.Module, given: tuple[Tensor, ...]) -> None:
        self.rows.append(len(given[0]))


_Noting.__module__ = "torch.nn"


@pytest.mark.parametrize("name", CASES)
@pytest.mark.parametrize("ranks", [2, 3])
def test_a_rank_computes_its_graphs(name: str, ranks: int) -> None:
    ((alone, all_rows, _),) = run(1, train, name)
    found = run(ranks, train, name)
    for history, _, said in found:
        for step, (expected, ours) in enumerate(zip(alone, history, strict=True)):
            assert (ours - expected).norm() <= 1e-12 * expected.norm(), step
        assert not said
    for step, whole in enumerate(all_rows):
        parts = [rows[step] for _, rows, _ in found]
        few = step == 4 and ranks == 3  # two graphs, unless they are taken for as many blocks as there are
        assert sum(parts) == whole or (few and parts == [whole] * ranks), step


@pytest.mark.parametrize("change", ["across", "empty"])
def test_what_does_not_lie_as_it_did_is_computed_whole(change: str) -> None:
    names = ["by vector", "in an object"] if change == "across" else ["in an object"]
    for name in names:
        ((alone, all_rows, _),) = run(1, train, name, change)
        for history, rows, _ in run(2, train, name, change):
            assert rows[3:] == all_rows[3:]
            for expected, ours in zip(alone, history, strict=True):
                assert (ours - expected).norm() <= 1e-12 * expected.norm()


@pytest.mark.filterwarnings("ignore")
@pytest.mark.parametrize("edges", EDGES)
def test_what_mixes_along_edges_is_seen_where_few_graphs_have_some(edges: str) -> None:
    (alone,) = run(1, mixed, edges)
    for history in run(2, mixed, edges):
        for expected, ours in zip(alone, history, strict=True):
            assert (ours - expected).norm() <= 1e-12 * expected.norm()
