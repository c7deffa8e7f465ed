"""Evaluation: each sample is computed once, on one rank, and the numbers are those of one process."""

from __future__ import annotations

from typing import Any

import pytest
import torch
import torch.nn.functional as F
from ddpify_runtime import DataLoader, DistributedDataParallel
from ddpify_runtime.forward import region
from torch import Tensor, nn
from torch.utils.data import TensorDataset

from .processes import run

SAMPLES = 501


def net() -> tuple[nn.Sequential, list[int]]:
    """A network, and how many rows each of its forwards computes, other than in trials."""
    model = nn.Sequential(nn.Linear(6, 8), nn.BatchNorm1d(8), nn.ReLU(), nn.Dropout(0.5), nn.Linear(8, 4))
    first: Any = model[0]
    rows: list[int] = []
    forward = first.forward

    def counting(x: Tensor) -> Tensor:
        here = region.current()
        if here is None or here.mode == "shard":
            rows.append(len(x))
        return forward(x)  # type: ignore[no-any-return]

    first.forward = counting
    return DistributedDataParallel(model), rows


def evaluate(gradients: bool) -> tuple[list[Any], int]:
    """What a script may compute of an evaluation, and the rows that this rank computed for it."""
    torch.manual_seed(0)
    data = TensorDataset(torch.randn(SAMPLES, 6), torch.randint(4, (SAMPLES,)))
    model, rows = net()
    model.eval()
    model.get_buffer("1.running_mean").normal_()
    correct = seen = 0
    total, hits, predicted, best, five = 0.0, 0.0, [], -1.0, 0
    with torch.set_grad_enabled(gradients):
        for x, y in DataLoader(data, batch_size=64):
            output = model(x)
            _, predictions = torch.max(output.data, 1)
            correct += (predictions == y).sum().item()
            pred = output.argmax(dim=1, keepdim=True)
            hits += float(pred.eq(y.view_as(pred)).float().mean())
            total += F.cross_entropy(output, y, reduction="sum").item()
            best = max(best, output.softmax(1).max().item())
            five += int(output.topk(2, dim=1).indices.eq(y.view(-1, 1)).any(1).sum())
            predicted += predictions.tolist()
            seen += y.size(0)
    return [correct, seen, round(hits, 5), round(total, 2), round(best, 5), five, predicted], sum(rows)


@pytest.mark.parametrize("gradients", [False, True])
@pytest.mark.parametrize("world_size", [2, 3, 4])
def test_each_sample_is_computed_once(world_size: int, gradients: bool) -> None:
    ((alone, _),) = run(1, evaluate, gradients)
    ranks = run(world_size, evaluate, gradients)
    assert [numbers for numbers, _ in ranks] == [alone] * world_size
    few = 2 * world_size  # a trial of gradients computes them whole on every rank, and once in parts; at call 1
    trials = few * (world_size + 1) if gradients else 0
    assert sum(rows for _, rows in ranks) == SAMPLES + trials
    assert max(rows for _, rows in ranks) - min(rows for _, rows in ranks) <= 8 + 2  # a row a batch, and a trial


def in_evaluation_mode() -> list[Tensor]:
    """Trained in evaluation mode, as a network with frozen statistics is."""
    torch.manual_seed(0)
    model, rows = net()
    model.eval()
    optimizer = torch.optim.SGD(model.parameters(), lr=0.1)
    for _ in range(4):
        optimizer.zero_grad()
        F.cross_entropy(model(torch.randn(13, 6)), torch.randint(4, (13,))).backward()
        optimizer.step()
    return [parameter.detach() for parameter in model.parameters()] + [torch.tensor(float(rows[-1]))]


def test_training_in_evaluation_mode_is_divided() -> None:
    (alone,) = run(1, in_evaluation_mode)
    for rank, found in enumerate(run(3, in_evaluation_mode)):
        for ours, true in zip(found[:-1], alone[:-1], strict=True):
            torch.testing.assert_close(ours, true, rtol=1e-6, atol=1e-7)
        assert found[-1] == len(range(rank, 13, 3))
