"""A tensor of a batch of which each rank holds its rows looks like the whole."""

from __future__ import annotations

from typing import Any

import pytest
import torch
from ddpify_runtime import DataLoader, DistributedDataParallel
from torch import nn
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


def views() -> list[Any]:
    """Views of a tensor whose form is changed later; what callers past __torch_function__ see after a change."""
    data = TensorDataset(torch.arange(24.0).view(12, 2))
    answers: list[Any] = []
    for (x,) in DataLoader(data, batch_size=6):
        flat, same, kept = x.view(-1), x.detach(), x.data
        x.t_()
        x += 1
        answers += [flat.tolist(), same.tolist(), same.shape, x.tolist()]
        kept += 1
        x.data = x.data * 2
        answers += [kept.tolist(), x.tolist(), torch.autograd.Variable(x).tolist()]
        answers.append(torch.autograd.Variable(flat).tolist())
    return answers


def test_a_view_keeps_its_form() -> None:
    (alone,) = run(1, views)
    assert run(2, views) == [alone, alone]


def few_samples() -> list[Any]:
    """What torch makes a copy of, though a rank has a single sample of it, which would do as it is."""
    answers: list[Any] = []
    for (x,) in DataLoader(TensorDataset(torch.arange(24.0).view(12, 2)), batch_size=3):
        flat, same, column = x.reshape(-1), x.contiguous(), x[:, 0]
        copies = x[:, 0].contiguous(), x[:, 0].reshape(-1, 1), torch.flatten(x[:, :1])
        copies[0].add_(3)
        x.add_(10)
        answers += [each.tolist() for each in (flat, same, column, *copies)]
    return answers


def test_a_copy_of_a_single_sample_does_not_follow() -> None:
    (alone,) = run(1, few_samples)
    assert run(2, few_samples) == [alone, alone]


def without_gradients() -> list[float]:
    """The gradient of a view that was made without gradients, of an output that has some."""
    torch.manual_seed(0)
    model = DistributedDataParallel(nn.Linear(4, 3))
    x = torch.randn(6, 4)
    for _ in range(2):
        model.zero_grad()
        out = model(x)
        with torch.no_grad():
            target = out[:, 0]
        (out[:, 1] - target[torch.arange(6)]).square().mean().backward()
    gradient = model.weight.grad
    assert gradient is not None
    return gradient.flatten().tolist()


def test_a_view_without_gradients_has_none() -> None:
    (alone,) = run(1, without_gradients)
    assert run(2, without_gradients) == [pytest.approx(alone, rel=1e-5)] * 2
