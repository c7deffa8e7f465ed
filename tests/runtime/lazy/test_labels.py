"""Labels that are loaded in parts: how many of them count is asked of the other ranks until it is known."""

from __future__ import annotations

from typing import Any

import pytest
import torch
import torch.nn.functional as F
from ddpify_runtime import DataLoader, DistributedDataParallel
from ddpify_runtime.lazy.labels import Labels, _Asked
from ddpify_runtime.sharding import collectives
from torch import Tensor, nn
from torch.utils.data import Dataset, TensorDataset

from ..processes import run

SIZE, BATCH, EPOCHS = 28, 8, 3


class Changing(Dataset[tuple[Tensor, Tensor]]):
    """Gives samples; from some sample on, a label is left out."""

    def __init__(self, given: int) -> None:
        self.samples = samples(False)
        self.left_out = torch.tensor(False)
        self.given = given

    def __len__(self) -> int:
        return SIZE

    def __getitem__(self, index: int) -> tuple[Tensor, Tensor]:
        x, label = self.samples[index]
        return x, torch.where(self.left_out, torch.full_like(label, -100), label) if index == 3 else label


def samples(left_out: bool, words: int = 4) -> TensorDataset:
    generator = torch.Generator().manual_seed(1)
    x = torch.randn(SIZE, words, 5, dtype=torch.float64, generator=generator)
    labels = torch.randint(7, (SIZE, words), generator=generator)
    if left_out:
        labels[::3, 1:] = -100
    return TensorDataset(x, labels)


def train(kind: str) -> tuple[list[Tensor], list[int]]:
    """The parameters after each epoch, and how often a number was summed over the ranks in it."""
    torch.manual_seed(0)
    dataset: Any = Changing(3) if kind == "changing" else samples(kind == "left out")
    loader = DataLoader(dataset, BATCH, shuffle=True, drop_last=kind == "dropped")
    model = DistributedDataParallel(nn.Linear(5, 7).double())
    optimizer = torch.optim.SGD(model.parameters(), lr=0.1)
    asked, begin_sum = [0], collectives.begin_sum
    epochs, counts = [], []

    def counted(tensor: Tensor) -> Any:
        asked[0] += not tensor.dim()
        return begin_sum(tensor)

    for epoch in range(EPOCHS + 9 * (kind == "dropped")):
        batches = iter(loader)  # which asks whether all ranks draw the same
        asked[0] = 0
        vars(collectives)["begin_sum"] = counted
        if kind == "changing" and epoch == EPOCHS - 1:
            dataset.left_out.fill_(True)
        for x, labels in batches:
            logits = model(x)
            optimizer.zero_grad()
            if kind == "shifted":
                loss = F.cross_entropy(logits[:, :-1].reshape(-1, 7), labels[:, 1:].reshape(-1))
            elif kind == "weighted":
                loss = F.cross_entropy(logits.view(-1, 7), labels.view(-1), weight=torch.arange(7.0).double())
            else:
                loss = F.cross_entropy(logits.view(-1, 7), labels.view(-1))
            loss.backward()
            optimizer.step()
        vars(collectives)["begin_sum"] = begin_sum
        counts.append(asked[0])
        epochs.append(torch.cat([parameter.detach().flatten() for parameter in model.parameters()]))
    return epochs, counts


@pytest.mark.parametrize("world_size", [2, 3])
@pytest.mark.parametrize("kind", ["plain", "shifted", "left out", "weighted", "dropped"])
def test_the_mean_is_that_of_one_process_and_asked_for_no_longer_than_needed(kind: str, world_size: int) -> None:
    ((alone, _),) = run(1, train, kind)
    for found, counts in run(world_size, train, kind):
        for epoch, expected in zip(found, alone, strict=True):
            torch.testing.assert_close(epoch, expected, rtol=1e-12, atol=1e-13)
        steps = 4 - (kind == "dropped")
        if kind in ("left out", "weighted"):
            assert counts == [steps - 1, steps, steps]  # the first batch is loaded whole
        elif kind == "dropped":
            assert counts[:2] == [steps - 1, steps] and not counts[-1]
        else:
            assert counts == [steps - 1, 0, 0]


@pytest.mark.parametrize("numbers", [[[0, -100]], [[0.0, 1.0]], [[]]])
def test_a_whole_batch_tells_nothing_of_labels_that_may_be_left_out(numbers: list[Any]) -> None:
    assert asked_after_a_pass(torch.tensor(numbers), -100) and not asked_after_a_pass(torch.tensor([[0, 1]]), -100)
    assert asked_after_a_pass(torch.tensor([[0, 1]]), 2)


def asked_after_a_pass(numbers: Tensor, ignore_index: int) -> bool:
    """Whether it is still asked after a pass of which one batch was loaded whole, and one in parts."""
    labels, ignored = Labels(), (ignore_index, torch.int64, "")
    labels.loaded_whole([0], numbers)
    labels.batch = 1
    labels._asked[ignored] = _Asked(torch.tensor(0), batches=1)
    labels.passed({1}, 2)
    return labels.learns


def test_a_label_that_is_left_out_later_stops_the_run() -> None:
    with pytest.raises(AssertionError, match=r"a target is left out of the loss now \(ignore_index\), but none was"):
        run(2, train, "changing")


def prepare(cast: bool) -> int:
    """How many tensors are gathered for inputs that the loop prepares itself."""
    torch.manual_seed(0)
    loader = DataLoader(samples(False), BATCH, shuffle=True)
    model = DistributedDataParallel(nn.Linear(20, 7).double())
    gathered, gather_parts = [0], collectives.gather_parts

    def counted(tensor: Tensor) -> list[Tensor]:
        gathered[0] += 1
        return gather_parts(tensor)

    for epoch in range(2):
        for x, labels in loader:
            if epoch:
                vars(collectives)["gather_parts"] = counted
            x = torch.autograd.Variable(x) if cast else x.type(torch.float64)
            F.cross_entropy(model(((x - 0.5) / 2).view(len(x), -1)), labels[:, 0]).backward()
    vars(collectives)["gather_parts"] = gather_parts
    return gathered[0]


@pytest.mark.parametrize("cast", [False, True])
def test_what_the_loop_does_to_each_sample_is_done_to_a_ranks_own(cast: bool) -> None:
    assert run(2, prepare, cast) == [0, 0]


def differentiate(_: None) -> list[float]:
    """Gradients of a batch that is a leaf: by torch.autograd.grad, and where backward leaves them."""
    torch.manual_seed(0)
    model = DistributedDataParallel(nn.Sequential(nn.Flatten(), nn.Linear(20, 7)).double())
    found = []
    for x, _labels in DataLoader(samples(False), BATCH):
        leaf = torch.autograd.Variable(x, requires_grad=True)
        [slope] = torch.autograd.grad(model(leaf).pow(2).sum(), leaf, create_graph=True)
        model.zero_grad()
        slope.pow(2).sum().backward()
        other = torch.autograd.Variable(x, requires_grad=True)
        model(other).pow(2).sum().backward()
        assert leaf.requires_grad and not x.requires_grad
        found += [float(slope.detach().pow(2).sum()), float(other.grad.pow(2).sum())]  # type: ignore[union-attr]
    return found


def test_a_batch_can_be_made_a_leaf_by_variable() -> None:
    [alone] = run(1, differentiate, None)
    for rank in run(2, differentiate, None):
        assert rank == pytest.approx(alone, rel=1e-12)
