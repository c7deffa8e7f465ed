"""Ranks that have other batches or other models are told so before anything is divided."""

from __future__ import annotations

import warnings

import pytest
import torch
import torch.distributed as dist
import torch.nn.functional as F
from ddpify_runtime import DataLoader, DistributedDataParallel
from ddpify_runtime.trial.equal_ranks import require_equal_inputs
from torch import nn
from torch.utils.data import TensorDataset

from tests.runtime.processes import run
from tests.runtime.training import (
    linear,
)


def different_batches() -> str:
    model = DistributedDataParallel(linear())
    torch.manual_seed(int(torch.distributed.get_rank()))
    try:
        model(torch.randn(12, 8))
    except RuntimeError as error:
        return str(error)
    return ""


def test_different_batches_are_an_error() -> None:
    for message in run(2, different_batches):
        assert "drew different batches" in message and "PYTHONHASHSEED" in message


def nested() -> bool:
    """What has no numbers of its own to compare is left out."""
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")  # torch's, of a prototype
        ragged = torch.nested.nested_tensor([torch.zeros(2), torch.zeros(3)])
    require_equal_inputs([ragged, torch.zeros(2)])
    return True


def test_nested_tensors_are_not_compared() -> None:
    assert run(2, nested) == [True, True]


def different_labels(loaded: bool, kind: torch.dtype) -> str:
    """The message of a first step, when the order of a set decides which class has which number."""
    torch.manual_seed(0)
    model = DistributedDataParallel(linear())
    x, y = torch.randn(12, 8), torch.arange(12) % 3
    if dist.get_rank():
        y = (y + 1) % 3
    y = y.to(kind) if kind == torch.int64 else y[:, None].to(kind).expand(12, 3)
    try:
        for inputs, labels in DataLoader(TensorDataset(x, y), batch_size=6) if loaded else [(x, y)]:
            loss = F.cross_entropy if kind == torch.int64 else F.mse_loss
            loss(model(inputs)[:, :3], labels).backward()
    except RuntimeError as error:
        return str(error)
    return ""


@pytest.mark.parametrize(("loaded", "kind"), [(True, torch.int64), (True, torch.float32), (False, torch.int64)])
def test_different_labels_are_an_error(loaded: bool, kind: torch.dtype) -> None:
    """Labels meet no model: each rank would train with its own."""
    for message in run(2, different_labels, loaded, kind):
        assert "drew different batches" in message and "PYTHONHASHSEED" in message


def different_models(kind: str) -> str:
    """The message of a first forward, when the rank decides about the model."""
    rank = dist.get_rank()
    torch.manual_seed(rank if kind == "weights" else 0)
    model = nn.Sequential(nn.Embedding(9, 4), nn.Linear(4, 2 + rank if kind == "sizes" else 2))
    try:
        DistributedDataParallel(model)(torch.arange(8))
    except RuntimeError as error:
        return str(error)
    return ""


@pytest.mark.parametrize("kind", ["weights", "sizes", ""])
def test_different_models_are_an_error(kind: str) -> None:
    for message in run(2, different_models, kind):
        assert message.startswith("ddpify: Sequential is not the same on every process") if kind else not message
