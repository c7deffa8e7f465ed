"""Forwards that mix their samples in some calls only, which a trial does not see by itself: no step may be wrong."""

from __future__ import annotations

import random
import warnings
from collections.abc import Callable
from types import SimpleNamespace
from typing import Any

import numpy as np
import pytest
import torch
from ddpify_runtime import DistributedDataParallel
from torch import Tensor, nn

from tests.turns import on_ranks

from ..processes import run

STEPS = 24
ROWS: list[int] = []  # that layers were given


class Layer(nn.Linear):
    def forward(self, input: Tensor) -> Tensor:
        ROWS.append(len(input))
        return super().forward(input)


class Mixes(nn.Module):
    """Mixes its samples when `asked` says so.

    asked: of the module and the number of the step, which it is given.
    """

    steps: Tensor

    def __init__(self, asked: Callable[[Any, int], Any]) -> None:
        super().__init__()
        self.asked = asked
        self.before, self.after = Layer(4, 6), Layer(6, 2)
        self.register_buffer("steps", torch.tensor(0))
        self.calls, self.epoch, self.rate = 0, 0, 1.0
        self.settings = SETTINGS
        self.state, self.counted = {"calls": 0}, SimpleNamespace(calls=[0])

    def forward(self, x: Tensor, step: int) -> Any:
        self.calls += 1
        self.state["calls"] += 1
        self.counted.calls[0] += 1
        self.steps += 1
        self.rate *= 0.9
        hidden = self.before(x).tanh()
        if self.asked(self, step):
            hidden = 0.7 * hidden + 0.3 * hidden.flip(0)
        return self.after(hidden)


MIXES, STEP = False, 0
SETTINGS = SimpleNamespace(mixes=False)
TABLE = {"mixes": False}
NESTED = SimpleNamespace(model=SimpleNamespace(layer={"blends": False}))


class Config:
    mixes = False

    class Layer:
        turned = False


class Object:
    crossed = False

    def crossed_now(self) -> bool:
        return self.crossed


OBJECT = Object()


def enclosed() -> tuple[Callable[[Any, int], Any], Callable[[bool], None]]:
    """A way that asks what a function around it holds, and what sets that."""
    held = {"folded": False}

    def change(to: bool) -> None:
        held["folded"] = to

    return (lambda module, step: held["folded"]), change


ENCLOSED, CHANGE_ENCLOSED = enclosed()


def named_far_away() -> bool:
    return MIXES


# "at once" passes with two ranks and an odd number of rows, as in most of a trial.
WAYS: dict[str, Callable[[Any, int], Any]] = {
    "at once": lambda module, step: True,
    "a count of calls": lambda module, step: module.calls > 20,
    "a count in a dict": lambda module, step: module.state["calls"] > 20,
    "a count in a list of an object": lambda module, step: module.counted.calls[0] > 20,
    "a count of calls, computed with": lambda module, step: module.calls * 2 % 50 == 40,
    "a count in a tensor": lambda module, step: module.steps > 20,
    "a count in a tensor, read": lambda module, step: (module.steps + 1).item() == 22,
    "a rate that falls": lambda module, step: module.rate < 0.12,
    "an attribute that the script sets": lambda module, step: module.epoch == 2,
    "a global": lambda module, step: MIXES,
    "a global in a function": lambda module, step: named_far_away(),
    "settings": lambda module, step: SETTINGS.mixes,
    "settings of its own": lambda module, step: module.settings.mixes,
    "a table of settings": lambda module, step: TABLE["mixes"],
    "a class of settings": lambda module, step: Config.mixes,
    "settings in settings": lambda module, step: NESTED.model.layer["blends"],
    "a class in a class of settings": lambda module, step: Config.Layer.turned,
    "an object of a class of settings": lambda module, step: OBJECT.crossed,
    "a method of an object of settings": lambda module, step: OBJECT.crossed_now(),
    "settings of a function around it": ENCLOSED,
    "a count in a global": lambda module, step: STEP > 20,
    "an argument": lambda module, step: step > 20,
    "Python's random": lambda module, step: random.random() < 0.1,
    "an integer of Python's random": lambda module, step: random.randint(0, 9) == 9,
    "numpy": lambda module, step: np.random.rand() < 0.1,
    "a number of torch": lambda module, step: torch.rand(()) < 0.1,
    "a number of torch, read": lambda module, step: torch.empty(1).uniform_().item() > 0.9,
}
HARMLESS: dict[str, Callable[[Any, int], Any]] = {
    "never": lambda module, step: False,
    "counts": lambda module, step: (module.calls + 1 // (module.steps + 1) + module.rate) is None,
}


class VirtualBatches(nn.Module):
    """Normalises six samples at a time, of which a trial has no more."""

    def __init__(self, cut: Callable[[Tensor], Any]) -> None:
        super().__init__()
        self.layer, self.norm, self.cut = Layer(4, 2), nn.BatchNorm1d(2), cut

    def forward(self, x: Tensor, step: int) -> Any:
        return torch.cat([self.norm(part) for part in self.cut(self.layer(x))])


CUTS: dict[str, Callable[[Tensor], Any]] = {
    "chunk": lambda x: x.chunk(-(-len(x) // 6)),
    "split": lambda x: torch.split(x, 6),
    "split by name": lambda x: x.split(split_size=6, dim=0),
    "slices": lambda x: [x[start : start + 6] for start in range(0, len(x), 6)],
}


class EachSample(nn.Module):
    """Draws with Python's random for each sample, alike for all of a few as a rule."""

    def __init__(self) -> None:
        super().__init__()
        self.layer = Layer(4, 2)

    def forward(self, x: Tensor, step: int) -> Any:
        return self.layer(torch.stack([row.flip(0) if random.random() < 0.05 else row for row in x]))


class LeavesOut(nn.Module):
    """Draws which layers it leaves out: nothing meets."""

    def __init__(self) -> None:
        super().__init__()
        self.layers, self.last = nn.ModuleList([Layer(4, 4) for _ in range(4)]), Layer(4, 2)

    def forward(self, x: Tensor, step: int) -> Any:
        draws: list[Callable[[], Any]] = [random.random, np.random.uniform, lambda: torch.rand(()), random.random]
        for layer, draw in zip(self.layers, draws, strict=True):
            if draw() < 0.5:
                x = x + layer(x).tanh()
        return self.last(x)


class RarelyDraws(nn.Module):
    """Draws for each sample in a layer that it rarely computes, not in a first trial."""

    def __init__(self) -> None:
        super().__init__()
        self.layers, self.last = nn.ModuleList([Layer(4, 4) for _ in range(4)]), Layer(4, 2)

    def forward(self, x: Tensor, step: int) -> Any:
        for layer in self.layers:
            if torch.rand(()) < 0.1:
                x = x + nn.functional.dropout(layer(x), 0.5)
        return self.last(x)


def train(build: Callable[[], nn.Module]) -> tuple[list[Tensor], int]:
    """The parameters after each step, and how many rows went into the last layer."""
    global MIXES, STEP
    for seed in (torch.manual_seed, random.seed, np.random.seed):
        seed(3)
    model: Any = DistributedDataParallel(build().double())
    optimizer = torch.optim.SGD(model.parameters(), lr=0.1)
    generator = torch.Generator().manual_seed(0)
    history = []
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        for step in range(STEPS):
            model.epoch, STEP = step // 10, step
            MIXES = SETTINGS.mixes = TABLE["mixes"] = Config.mixes = step > 20
            NESTED.model.layer["blends"], Config.Layer.turned, Object.crossed = step > 16, step > 17, step > 18
            CHANGE_ENCLOSED(step > 18)
            x = torch.randn(8, 4, generator=generator, dtype=torch.float64)
            optimizer.zero_grad()
            model(x, step).square().mean().backward()
            optimizer.step()
            history.append(torch.cat([parameter.detach().flatten() for parameter in model.parameters()]))
    return history, ROWS[-1]


def require_exact(build: Callable[[], nn.Module], ranks: int) -> int:
    """The rows of the last step."""
    ((alone, _),) = run(1, train, build)
    found = run(ranks, train, build)
    for history, _ in found:
        for step, (ours, true) in enumerate(zip(history, alone, strict=True)):
            assert (ours - true).norm() <= 1e-12 * true.norm(), step
    return int(found[0][1])


@pytest.mark.parametrize(("way", "ranks"), on_ranks(WAYS))
def test_no_step_is_wrong(way: str, ranks: int) -> None:
    require_exact(lambda: Mixes(WAYS[way]), ranks)


@pytest.mark.parametrize("cut", CUTS)
def test_batches_within_a_batch_stay_what_they_are(cut: str) -> None:
    require_exact(lambda: VirtualBatches(CUTS[cut]), 2)


def test_what_a_forward_draws_for_each_sample_outside_of_torch_is_drawn_whole() -> None:
    require_exact(EachSample, 2)


@pytest.mark.parametrize("way", HARMLESS)
def test_a_number_that_decides_nothing_leaves_a_forward_divided(way: str) -> None:
    assert require_exact(lambda: Mixes(HARMLESS[way]), 2) == 4


def test_layers_that_are_left_out_by_chance_are_divided() -> None:
    assert require_exact(LeavesOut, 2) == 4


def test_what_is_drawn_in_layers_that_are_rarely_computed_is_known() -> None:
    assert require_exact(RarelyDraws, 2) == 4
