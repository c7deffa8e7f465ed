"""DDPIFY_CHECK=1: what differs between ranks is found within a few steps, and named."""

from __future__ import annotations

import os
from datetime import timedelta
from typing import Any

import pytest
import torch
from ddpify_runtime import DataLoader, DistributedDataParallel, get_rank
from ddpify_runtime.agreement import check
from torch import Tensor, nn
from torch.utils.data import TensorDataset

from tests.runtime.processes import run

STEPS = 12


class Mix(torch.autograd.Function):
    """Its backward mixes samples if there are as many as in a whole batch, so not in a trial of a few rows."""

    @staticmethod
    def forward(ctx: Any, x: Tensor) -> Tensor:
        return x.clone()

    @staticmethod
    def backward(ctx: Any, *gradients: Tensor) -> Tensor:
        (gradient,) = gradients
        return gradient + gradient.mean(0) if len(gradient) == 8 else gradient


class MixesLargeBatches(nn.Module):
    def forward(self, x: Tensor) -> Tensor:
        mixed: Tensor = Mix.apply(x)  # type: ignore[no-untyped-call]
        return mixed


def train(mistake: str) -> str:
    """Train a little with the check; what it said, or "" if it said nothing."""
    os.environ["DDPIFY_CHECK"] = "1"
    torch.manual_seed(0)
    if mistake == "steps":  # where a rank does not come
        check.LIMIT = timedelta(seconds=3)
    check.start()
    try:
        _train(mistake)
        check.finish()
    except RuntimeError as error:
        return str(error)
    return ""


def _train(mistake: str) -> None:
    data = TensorDataset(torch.randn(STEPS * 8, 6), torch.randint(3, (STEPS * 8,)))
    sampler = list(range(len(data)))
    if mistake == "order" and get_rank() == 1:
        sampler[40:] = sampler[:39:-1]
    loader = DataLoader(data, batch_size=8, sampler=sampler)
    model = DistributedDataParallel(nn.Sequential(nn.Linear(6, 5), nn.Tanh(), nn.Linear(5, 3)))
    optimizer = torch.optim.SGD(model.parameters(), lr=0.1)
    if mistake == "gradient":
        model.append(MixesLargeBatches())
    for number, (x, y) in enumerate(loader, start=1):
        optimizer.zero_grad()
        nn.functional.cross_entropy(model(x), y).backward()
        if mistake == "parameter" and get_rank() == 1 and number == 7:
            last = model[2]
            assert isinstance(last, nn.Linear)
            last.bias.data += 1e-7
        if mistake == "steps" and get_rank() == 1 and number == 5:
            continue
        optimizer.step()


def test_nothing_is_said_of_a_run_as_it_should_be() -> None:
    assert run(2, train, "") == ["", ""]


@pytest.mark.parametrize(
    ("mistake", "message"),
    [
        ("parameter", "at optimizer step 10 rank 1 has other values in Sequential.2.bias"),
        ("order", "at optimizer step 10 rank 1 drew other batches"),
        ("steps", "rank 1 did not come to optimizer step 10 within 3 s of rank 0"),
        ("gradient", "are not those of the whole batch in one process"),
    ],
)
def test_difference_is_named_with_its_rank_and_step(mistake: str, message: str) -> None:
    answers: list[Any] = run(2, train, mistake)
    assert any(message in answer for answer in answers), answers
    assert all(answers), "a rank went on"
