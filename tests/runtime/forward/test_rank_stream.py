"""What a divided forward draws for a rank's own rows: nobody draws the masks of the whole batch."""

from __future__ import annotations

import os
import warnings
from typing import Any

import pytest
import torch
from ddpify_runtime import DistributedDataParallel, get_rank
from torch import Tensor, nn
from torch.utils._python_dispatch import _get_current_dispatch_mode
from torch.utils.checkpoint import checkpoint

from tests.runtime.processes import run

LIBRARY = torch.library.Library("ddpify_tests", "DEF")
LIBRARY.define("attention(Tensor x, float dropout_p) -> Tensor", tags=(torch.Tag.nondeterministic_seeded,))
LIBRARY.impl("attention", lambda x, dropout_p: x.clone(), "Meta")


def attention(x: Tensor, dropout_p: float) -> Tensor:
    """Stands for a kernel that draws within itself, as attention does on a GPU."""
    return x * (torch.rand(x.shape) >= dropout_p)


LIBRARY.impl("attention", attention, "CPU")


class Dropped(nn.Module):
    """Which of 32 ones are left; `mode`: what saw the operations of the last forward."""

    def __init__(self, fused: bool) -> None:
        super().__init__()
        self.fused = fused
        self.scale = nn.Parameter(torch.ones(32))
        self.mode: Any = None

    def forward(self, x: Tensor) -> Tensor:
        self.mode = _get_current_dispatch_mode()
        if self.fused:
            with torch.no_grad():
                kept = torch.ops.ddpify_tests.attention(torch.ones_like(x), 0.5)
            dropped: Tensor = x * self.scale * kept
            return dropped
        return nn.functional.dropout(x * self.scale, 0.5)


def masks(fused: bool, seed: int) -> tuple[list[list[list[bool]]], list[float], bool]:
    """The masks of three forwards of 7 samples, what the loop draws meanwhile, and whether a mode was on."""
    os.environ["DDPIFY_RANDOM"] = ""
    torch.manual_seed(seed)
    model = DistributedDataParallel(Dropped(fused))
    found, drawn = [], []
    for _ in range(3):
        found.append((model(torch.ones(7, 32)) != 0).tolist())
        drawn.append(float(torch.rand(())))
    return found, drawn, model.mode is not None


@pytest.mark.parametrize("fused", [False, True])
def test_no_two_samples_have_the_same_mask(fused: bool) -> None:
    first, second = run(2, masks, fused, 1)
    assert first == second
    rows = [tuple(row) for mask in first[0] for row in mask]
    assert len(rows) == len(set(rows)) == 21
    assert not first[2]


def test_the_same_run_draws_the_same_again() -> None:
    assert run(2, masks, False, 1) == run(2, masks, False, 1)
    assert run(2, masks, False, 1)[0][0] != run(2, masks, False, 2)[0][0]


def test_the_loop_draws_what_it_would_without_dropout() -> None:
    torch.manual_seed(1)
    assert run(3, masks, False, 1)[get_rank()][1] == [float(torch.rand(())) for _ in range(3)]


class Checkpointed(nn.Module):
    """Drops values, and does so again in the backward."""

    def __init__(self) -> None:
        super().__init__()
        self.scale = nn.Parameter(torch.ones(32))

    def forward(self, x: Tensor) -> Tensor:
        dropped: Tensor = checkpoint(
            lambda given: nn.functional.dropout(given * self.scale, 0.5), x, use_reentrant=False
        )
        return dropped


def drop_again() -> tuple[list[Tensor], list[str]]:
    """The rows that are left, summed, and the gradients: the masks of the backward, summed."""
    os.environ["DDPIFY_RANDOM"] = ""
    torch.manual_seed(2)
    found = []
    with warnings.catch_warnings(record=True) as said:
        warnings.simplefilter("always")
        model = DistributedDataParallel(Checkpointed())
        for _ in range(3):
            model.zero_grad()
            output = model(torch.ones(7, 32))
            output.sum().backward()
            assert model.scale.grad is not None
            found += [output.detach().sum(0), model.scale.grad.clone()]
    return found, [str(each.message) for each in said if "ddpify" in str(each.message)]


def test_what_is_checkpointed_drops_the_same_again() -> None:
    for found, said in run(3, drop_again):
        assert not said
        for forward, backward in zip(found[::2], found[1::2], strict=True):
            assert torch.allclose(forward, backward) and len(forward.unique()) > 3


class LeavesOut(nn.Module):
    """Drops values, and the whole layer by one number for all samples."""

    def __init__(self) -> None:
        super().__init__()
        self.layer = nn.Linear(4, 4)

    def forward(self, x: Tensor) -> Tensor:
        left_out = torch.rand([]) < 0.5
        return nn.functional.dropout(x if left_out else self.layer(x) + 10, 0.1)


def leave_out() -> list[list[bool]]:
    os.environ["DDPIFY_RANDOM"] = ""
    torch.manual_seed(3)
    model = DistributedDataParallel(LeavesOut())
    return [(model(torch.ones(6, 4)) > 5).any(1).tolist() for _ in range(8)]


def test_what_all_samples_share_is_drawn_once_for_all() -> None:
    found, _ = run(2, leave_out)
    assert {(True,) * 6, (False,) * 6} == {tuple(rows) for rows in found}


PROBABILITY = [0.0]  # that no attribute of a module tells


class BeginsLater(nn.Module):
    """Leaves its layer out from some forward on, by one number for all samples; or adds noise to each."""

    def __init__(self, drops: bool, noise: bool) -> None:
        super().__init__()
        self.layer = nn.Linear(4, 4)
        self.drops, self.noise = drops, noise

    def forward(self, x: Tensor) -> Tensor:
        x = nn.functional.dropout(x, 0.5 if self.drops else 0.0)
        if PROBABILITY[0] and self.noise:
            x = x + torch.randn_like(x)
        elif PROBABILITY[0] and torch.rand(()) < PROBABILITY[0]:
            return x
        output: Tensor = self.layer(x) + 100
        return output


def begin_later(drops: bool, noise: bool = False) -> list[tuple[bool, ...]]:
    """For each forward, which samples went through the layer; from the sixth on some should not."""
    os.environ["DDPIFY_RANDOM"] = ""
    torch.manual_seed(0)
    model = DistributedDataParallel(BeginsLater(drops, noise))
    found = []
    for step in range(15):  # up to the next trial
        PROBABILITY[0] = 0.5 * (step >= 5)
        found.append(tuple((model(torch.ones(7, 4)) > 50).all(1).tolist()))
    return found


@pytest.mark.parametrize("drops", [False, True])
def test_a_layer_that_is_left_out_later_is_so_for_every_sample(drops: bool) -> None:
    first, second = run(2, begin_later, drops)
    assert first == second
    assert set(first[:5]) == {(True,) * 7} and set(first[5:]) == {(True,) * 7, (False,) * 7}


def test_noise_that_begins_later_stops_the_run() -> None:
    with pytest.raises(AssertionError, match=r"began to draw random numbers \(randn_like\) after it had been divided"):
        run(2, begin_later, False, True)
