"""The drop-in DataLoader: the same batches as torch's, loaded in parts where that is exact."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest
import torch
from ddpify_runtime import DataLoader
from torch import Tensor
from torch.utils.data import Dataset, TensorDataset, WeightedRandomSampler

from .processes import run


class Counted(Dataset[tuple[Tensor, int]]):
    """53 samples; counts what is loaded; may draw random numbers, as augmentation does."""

    def __init__(self, draws: str = "") -> None:
        self.draws, self.loaded = draws, 0
        self.own = np.random.default_rng(0) if draws == "own generator" else None

    def __len__(self) -> int:
        return 53

    def __getitem__(self, index: int) -> tuple[Tensor, int]:
        self.loaded += 1
        noise = 0.0
        if self.draws == "torch":
            noise = torch.rand(()).item()
        elif self.draws == "numpy":
            noise = np.random.rand()
        elif self.own is not None:
            noise = float(self.own.random())
        return torch.tensor([float(index), noise]), index % 3


def batches(draws: str, options: dict[str, Any]) -> tuple[list[list[float]], int, float]:
    """Two epochs: every batch as numbers, how many samples this rank loaded, and the next random number."""
    torch.manual_seed(5)
    np.random.seed(5)
    dataset = Counted(draws)
    if options.pop("weighted", False):
        options["sampler"] = WeightedRandomSampler(torch.linspace(0.1, 1, 53).tolist(), 40)
    loader = DataLoader(dataset, batch_size=10, **options)
    found = []
    for _ in range(2):
        for x, y in loader:
            assert len(x) == x.size(0) == x.shape[0] == len(y)
            found.append(torch.cat([x.to("cpu").float().view(len(x), -1), y[:, None]], dim=1).flatten().tolist())
    return found, dataset.loaded, torch.rand(()).item()


@pytest.mark.parametrize("draws", ["", "torch", "numpy", "own generator"])
@pytest.mark.parametrize("options", [{"shuffle": True}, {"shuffle": True, "drop_last": True}, {"weighted": True}, {}])
def test_same_batches_in_the_same_order(draws: str, options: dict[str, Any]) -> None:
    (alone,) = run(1, batches, draws, options)
    for rank in run(3, batches, draws, options):
        assert rank[0] == alone[0]
        assert rank[2] == alone[2]


def test_each_rank_loads_its_rows() -> None:
    loaded = [count for _, count, _ in run(3, batches, "", {"shuffle": True})]
    # The first batch of 10 whole, then a third of each: 43 of the first epoch, 53 of the second.
    assert sum(loaded) == 3 * 10 + 43 + 53
    assert max(loaded) - min(loaded) <= 10


def test_a_sampler_is_given_when_the_loader_is_made() -> None:
    """As torch's own: there is no such script to convert (D4)."""
    with pytest.raises(ValueError, match="sampler attribute should not be set"):
        DataLoader(Counted()).sampler = WeightedRandomSampler([1.0] * 53, 53)


def test_random_samples_are_loaded_whole() -> None:
    assert [count for _, count, _ in run(2, batches, "torch", {"shuffle": True})] == [106, 106]


def uses() -> list[Any]:
    """Everything that is not the training forward sees the whole batch."""
    data = TensorDataset(torch.arange(24.0).view(12, 2), torch.arange(12))
    torch.manual_seed(0)
    answers: list[Any] = []
    for x, y in list(DataLoader(data, batch_size=6, shuffle=True))[1:]:
        answers += [
            x.mean().item(),
            (y == y.sort().values).tolist(),
            x[2:4].tolist(),
            [row.tolist() for row in x],
            x.numpy().sum().item(),
            torch.autograd.Variable(x).view(-1, 1).shape[0],
            x.unsqueeze(1).shape,
            x.t().shape,
            str(y),
            x.data.add_(1).sum().item(),
            torch.stack([x, x]).shape,
        ]
        x += 5
        x.requires_grad_()
        (x * x).sum().backward()
        answers += [x.tolist(), x.grad.tolist(), x.requires_grad]
    return answers


def test_a_part_looks_like_the_whole() -> None:
    (alone,) = run(1, uses)
    assert run(2, uses) == [alone, alone]


def changes() -> list[Any]:
    """A view follows a change in place, a copy does not."""
    torch.manual_seed(0)
    _, (x,) = DataLoader(TensorDataset(torch.arange(24.0).view(12, 2)), batch_size=6, shuffle=True)
    copied, view = x.double(), x.view(-1, 2, 1)
    x += 5
    return [copied.tolist(), view.tolist(), x.tolist()]


def test_a_copy_does_not_follow_a_change() -> None:
    (alone,) = run(1, changes)
    assert run(2, changes) == [alone, alone]
