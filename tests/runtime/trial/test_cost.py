"""What the trials of a deep network compute, by count, and that what mixes its samples is found at that price."""

from __future__ import annotations

import os
import warnings
from collections.abc import Callable
from typing import Any

import pytest
import torch
import torch.nn.functional as F
from ddpify_runtime import DistributedDataParallel
from torch import Tensor, nn

from ..processes import run

DEPTH, SAMPLES = 40, 16
SHALLOW = 4  # where it is counted what steps compute, not how rounding grows: 16 steps of 40 layers take a minute
Passes = list[tuple[int, torch.dtype]]  # the rows of each, and their type


class Noted(list[Any]):
    """What trials add stays, as it does not in a plain list of the script's."""


class Deep(nn.Module):
    """Convolutions, batch normalisations and ReLUs, which make rounding grow as those of a ResNet-101 do."""

    def __init__(
        self, mix: Callable[[Deep, Tensor], Tensor] = lambda module, hidden: hidden, depth: int = DEPTH
    ) -> None:
        super().__init__()
        self.layers = nn.ModuleList(nn.Conv2d(3 if not i else 8, 8, 3, padding=1, bias=False) for i in range(depth))
        self.norms = nn.ModuleList(nn.BatchNorm2d(8) for _ in range(depth))
        self.factor = nn.Parameter(torch.zeros(()))
        self.mix = mix

    def forward(self, x: Tensor) -> Tensor:
        FORWARD.append((len(x), x.dtype))
        for i, (layer, norm) in enumerate(zip(self.layers, self.norms, strict=True)):
            x = F.relu(norm(layer(x)), inplace=True)
            if i == len(self.layers) // 2:
                x = self.mix(self, x)
        if x.requires_grad:
            x.register_hook(lambda gradient: BACKWARD.append((len(gradient), gradient.dtype)))
        return x.mean((2, 3))


FORWARD: Passes = Noted()
BACKWARD: Passes = Noted()


class FlipsBackward(torch.autograd.Function):
    @staticmethod
    def forward(ctx: Any, x: Tensor) -> Tensor:
        return x.clone()

    @staticmethod
    def backward(ctx: Any, *gradients: Tensor) -> Tensor:
        return gradients[0].flip(0)


MIXES: dict[str, Callable[[Deep, Tensor], Tensor]] = {
    "a little": lambda module, hidden: hidden + 1e-3 * hidden.mean(0),
    "the other way round": lambda module, hidden: 0.999 * hidden + 0.001 * hidden.flip(0),
    "from zero on": lambda module, hidden: hidden + module.factor * hidden.mean(0),
    "backward": lambda module, hidden: FlipsBackward.apply(hidden),  # type: ignore[no-untyped-call]
}


def passes(mix: str, steps: int, depth: int = DEPTH) -> tuple[list[Passes], list[Passes]]:
    """What each step computes forward and backward."""
    os.environ["DDPIFY_RANDOM"] = ""
    torch.manual_seed(0)
    forward, backward = [], []
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        model = DistributedDataParallel(Deep(MIXES[mix], depth) if mix else Deep(depth=depth))
        for _ in range(steps):
            FORWARD.clear()
            BACKWARD.clear()
            model(torch.randn(SAMPLES, 3, 6, 6)).square().sum().backward()
            forward.append(FORWARD.copy())
            backward.append(BACKWARD.copy())
    return forward, backward


def test_trials_take_a_few_rows_and_no_wider_type() -> None:
    for rank, (forward, backward) in enumerate(run(2, passes, "", 4)):
        part, share = 3 - rank, SAMPLES // 2
        rows = [[each for each, _ in step] for step in forward]
        assert rows == [[5, part, 4, 2, share], [share], [share], [6, 3, share]]
        assert [[each for each, _ in step] for step in backward] == [[4, 2, share], [share], [share], [share]]
        assert {dtype for step in forward + backward for _, dtype in step} == {torch.float32}


def test_gradients_are_tried_again_without_another_trial_of_outputs() -> None:
    for forward, backward in run(2, passes, "", 16, SHALLOW):
        share = SAMPLES // 2
        assert [[each for each, _ in step] for step in forward[-2:]] == [[share], [4, 2, share]]
        assert [[each for each, _ in step] for step in backward[-2:]] == [[share], [4, 2, share]]


def test_gradients_are_tried_again_on_as_many_rows_for_five_ranks_as_for_three() -> None:
    for ranks in (3, 5):
        for rank, (forward, backward) in enumerate(run(ranks, passes, "", 16, SHALLOW)):
            part, share = (3, 2, 2)[rank % 3], len(range(rank, SAMPLES, ranks))
            assert [[each for each, _ in step] for step in forward[-2:]] == [[share], [7, part, share]]
            assert [[each for each, _ in step] for step in backward[-2:]] == [[share], [7, part, share]]


@pytest.mark.parametrize("kind", ["a mean", "a sum", "used", "ignored", "masked", "decides", "counts"])
def test_sums_over_ranks_take_each_share_once(kind: str) -> None:
    for rank, rows in enumerate(run(5, rows_with_a_sum, kind)):
        assert rows == [7, (3, 2, 2)[rank % 3], len(range(rank, SAMPLES, 5))]


def rows_with_a_sum(kind: str) -> list[int]:
    """The rows of the forwards at call 16."""
    os.environ["DDPIFY_RANDOM"] = ""
    torch.manual_seed(0)
    model = DistributedDataParallel(WithASum(kind))
    for _ in range(16):
        FORWARD.clear()
        model(torch.randn(SAMPLES, 3), torch.randint(4, (SAMPLES,))).sum().backward()
    return [rows for rows, _ in FORWARD]


class WithASum(nn.Module):
    """Computes something of which the ranks add up their parts."""

    def __init__(self, kind: str) -> None:
        super().__init__()
        self.layer, self.kind = nn.Linear(3, 4), kind

    def forward(self, x: Tensor, y: Tensor) -> Tensor:
        FORWARD.append((len(x), x.dtype))
        out: Tensor = self.layer(x)
        if self.kind == "decides":
            return out if (y < 2).any() else 2 * out
        if self.kind == "counts":
            return out if (y >= 0).sum() == y.numel() else 2 * out
        if self.kind == "ignored":
            return F.cross_entropy(out, y, ignore_index=1)
        if self.kind == "masked":
            return (out.square().sum(1) * (y < 2)).sum() / (y < 2).sum()
        loss = F.mse_loss(out, torch.zeros_like(out), reduction="sum" if self.kind == "a sum" else "mean")
        return torch.exp(loss) if self.kind == "used" else loss


LATE: list[int] = Noted()


def flips_later(module: Deep, hidden: Tensor) -> Tensor:
    """Mixes gradients once LATE says so, which no number tells."""
    return FlipsBackward.apply(hidden) if LATE else hidden  # type: ignore[no-untyped-call]


def begins_to_mix() -> str:
    """What stops a training of which the backward begins to mix samples after three steps."""
    LATE.clear()
    model = DistributedDataParallel(Deep(flips_later, SHALLOW))
    for step in range(16):
        if step == 3:
            LATE.append(step)
        try:
            model(torch.randn(SAMPLES, 3, 6, 6)).square().sum().backward()
        except RuntimeError as error:
            return f"{step + 1}: {error}"
    return ""


@pytest.mark.parametrize("ranks", [2, 3, 5])
def test_a_backward_that_begins_to_mix_samples_stops_the_run(ranks: int) -> None:
    for said in run(ranks, begins_to_mix):
        assert said.startswith(
            "16: ddpify: the training forward of Deep was divided over the processes, but at call 16"
        )
        assert "the gradients of a sample depend on the rest of the batch" in said


def test_outputs_are_tried_on_as_many_rows_for_five_ranks_as_for_three() -> None:
    for rank, (forward, _) in enumerate(run(5, passes, "", 4)):
        part, share = (3, 3, 2)[rank % 3], len(range(rank, SAMPLES, 5))
        rows = [[each for each, _ in step] for step in forward]
        assert rows == [[8, part, 10, 2, share], [share], [share], [8, part, share]]


@pytest.mark.parametrize(("mix", "ranks"), [*((mix, 2) for mix in MIXES), ("the other way round", 5)])
def test_what_mixes_a_deep_network_is_found(mix: str, ranks: int) -> None:
    for forward, _ in run(ranks, passes, mix, 1):
        assert forward[0][-1][0] == SAMPLES
