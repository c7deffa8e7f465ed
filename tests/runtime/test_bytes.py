"""What travels between the ranks in a step, as gloo tells it, beside what DistributedDataParallel by hand sends."""

from __future__ import annotations

import math
from collections.abc import Callable
from typing import Literal

import pytest
import torch
import torch.distributed as dist
import torch.nn.functional as F
from ddpify_runtime import DistributedDataParallel
from torch import Tensor, nn
from torch.profiler import ProfilerActivity, profile

from .processes import run

Sent = list[int]  # for each collective, how many numbers of float32 a rank gives to it


class Text(nn.Module):
    """Words to scores, or to the loss as well."""

    def __init__(self) -> None:
        super().__init__()
        self.embed = nn.Embedding(50, 16)
        layer = nn.TransformerEncoderLayer(16, 2, 32, dropout=0.1, batch_first=True)
        self.encoder = nn.TransformerEncoder(layer, 1, enable_nested_tensor=False)
        self.head = nn.Linear(16, 50)

    def forward(self, x: Tensor, labels: Tensor | None = None) -> Tensor:
        scores: Tensor = self.head(self.encoder(self.embed(x)))
        return scores if labels is None else F.cross_entropy(scores.flatten(0, 1), labels.flatten())


def classes(model: nn.Module, share: slice) -> Tensor:
    return F.cross_entropy(model(torch.randn(24, 8)[share]), (torch.arange(24) % 3)[share])


def targets_like_scores(model: nn.Module, share: slice) -> Tensor:
    scores = model(torch.randn(24, 8)[share])
    real = F.binary_cross_entropy_with_logits(scores, torch.ones_like(scores))
    return real + F.mse_loss(scores, scores.new_zeros(scores.shape))


def words(model: nn.Module, share: slice) -> Tensor:
    x = torch.randint(50, (24, 6))[share]
    return F.cross_entropy(model(x).flatten(0, 1), x.flatten())


def some_words(model: nn.Module, share: slice) -> Tensor:
    x = torch.randint(50, (24, 6))[share]
    labels = x.where(x > 10, -100)
    return F.cross_entropy(model(x).flatten(0, 1), labels.flatten(), ignore_index=-100)


def loss_inside(model: nn.Module, share: slice) -> Tensor:
    x = torch.randint(50, (24, 6))[share]
    loss: Tensor = model(x, x)
    return loss


def penalty(model: nn.Module, share: slice) -> Tensor:
    """That of WGAN-GP: the gradients of the samples."""
    x = torch.randn(24, 8)[share].requires_grad_()
    scores = model(x)
    (slope,) = torch.autograd.grad(scores, x, torch.ones_like(scores), create_graph=True)
    loss: Tensor = scores.mean() + (slope.norm(2, dim=1) - 1).square().mean()
    return loss


def layers() -> nn.Module:
    return nn.Sequential(nn.Linear(8, 16), nn.ReLU(), nn.Dropout(0.1), nn.Linear(16, 3))


def smooth() -> nn.Module:
    return nn.Sequential(nn.Linear(8, 16), nn.Tanh(), nn.Linear(16, 3))


def normalised() -> nn.Module:
    return nn.Sequential(nn.Linear(8, 16), nn.BatchNorm1d(16), nn.ReLU(), nn.Linear(16, 3))


Step = Callable[[nn.Module, slice], Tensor]
# Beside the gradients: of a BatchNorm mean, variance and number of each channel, and two sums in the backward, as
# torch's SyncBatchNorm; of a mean inside of the forward what it is divided by.
CASES: dict[str, tuple[Callable[[], nn.Module], Step, Sent]] = {
    "classes": (layers, classes, []),
    "targets_like_scores": (layers, targets_like_scores, []),
    "batch_norm": (normalised, classes, [48, 32]),
    "words": (Text, words, []),
    "ignore_index": (Text, some_words, []),
    "loss_inside": (Text, loss_inside, [1]),
}


# Its outputs and the gradients of its samples are joined; what a pass that accumulates nothing reduces is nothing.
JOINED: dict[str, tuple[Callable[[], nn.Module], Step, Sent]] = {"penalty": (smooth, penalty, [])}


def sent(name: str, by: Literal["hand", "ours"], reads: bool) -> tuple[Sent, int, int]:
    """What this rank sends in a step and an evaluation, how many parameters there are, and how many numbers in them.

    What is short goes straight to each rank: there gloo is given it once for each of them.
    """
    build, step, _ = (CASES | JOINED)[name]
    torch.manual_seed(3)
    module = build()
    every, mine = slice(None), slice(dist.get_rank(), None, dist.get_world_size())
    model = DistributedDataParallel(module) if by == "ours" else nn.parallel.DistributedDataParallel(module)
    share = every if by == "ours" else mine
    for _ in range(5):  # with the trials of calls 1 and 4
        step(model, share).backward()
    with profile(activities=[ProfilerActivity.CPU], record_shapes=True) as seen:
        loss = step(model, share)
        loss.backward()
        if reads:
            loss.item()
        dist.barrier()
    given = [(event.name.partition(":"), event.input_shapes) for event in seen.events()]
    collectives = [(name, math.prod(shapes[0])) for (library, _, name), shapes in given if library == "gloo" and shapes]
    collectives = [each for each in collectives if each[0] != "broadcast"]  # of running statistics, by hand
    assert {name for name, _ in collectives} == ({"all_reduce"} if by == "hand" else {"all_to_all"})
    copies = 1 if by == "hand" else dist.get_world_size()
    parameters = list(module.parameters())
    return (
        sorted(numbers // copies for _, numbers in collectives),
        len(parameters),
        sum(each.numel() for each in parameters),
    )


@pytest.mark.parametrize("world_size", [2, 3, 4])
@pytest.mark.parametrize("name", CASES)
@pytest.mark.filterwarnings("ignore")
def test_a_step_sends_the_gradients_and_a_flag_for_each(name: str, world_size: int) -> None:
    for collectives, _, numbers in run(world_size, sent, name, "hand", False):
        assert max(collectives) == numbers
    for collectives, parameters, numbers in run(world_size, sent, name, "ours", False):
        assert collectives == sorted([*CASES[name][2], numbers + parameters])


@pytest.mark.filterwarnings("ignore")
def test_a_loss_that_is_read_sends_one_number_more() -> None:
    for collectives, parameters, numbers in run(2, sent, "classes", "ours", True):
        assert collectives == [1, numbers + parameters]


@pytest.mark.filterwarnings("ignore")
def test_gradients_of_samples_reduce_those_of_parameters_once() -> None:
    for collectives, parameters, numbers in run(2, sent, "penalty", "ours", False):
        assert collectives.count(numbers + parameters) == 1
