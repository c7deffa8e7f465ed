"""A tensor of a batch of which each rank holds its rows looks like the whole."""

from __future__ import annotations

from typing import Any

import pytest
import torch
from ddpify_runtime import DataLoader
from torch.utils.data import TensorDataset

from tests.runtime.processes import run


@pytest.fixture(autouse=True)
def random_numbers_as_in_a_run(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("DDPIFY_RANDOM", "")


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


def changed_in_form() -> list[Any]:
    """The forms of tensors that were changed in place, of a batch that the ranks load in parts."""
    data = TensorDataset(torch.arange(24.0).view(12, 2), torch.arange(12).view(12, 1))
    answers: list[Any] = []
    for x, y in DataLoader(data, batch_size=6):
        other = x.clone()
        other.transpose_(0, 1)
        y.squeeze_(1)
        view = x[:2]
        view.unsqueeze_(0)
        answers += [other.shape, len(other), y.shape, y.dim(), y.size(), view.ndim, x.shape]
        x.data = x.data.repeat(2, 1)
        answers += [x.shape, x.numel(), x.sum().item()]
    return answers


def test_sizes_are_those_after_a_change_in_place() -> None:
    (alone,) = run(1, changed_in_form)
    assert run(2, changed_in_form) == [alone, alone]
