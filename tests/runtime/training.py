"""Trains a model in one process and in several: the parameters after every step, to float tolerance."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator
from functools import cache
from typing import Any, Literal, TypeAlias
from weakref import WeakKeyDictionary

import pytest
import torch
import torch.nn.functional as F
from ddpify_runtime import DistributedDataParallel
from torch import Tensor, nn
from torch.utils.checkpoint import checkpoint

from tests.turns import turn

from .processes import run

Step: TypeAlias = Callable[[Any, Tensor, Tensor], Iterator[Tensor]]
Reduction: TypeAlias = Literal["ddp", "native"]
Case: TypeAlias = tuple[Callable[[], nn.Module], Step]
WAYS: list[tuple[int, Reduction]] = [(2, "ddp"), (3, "ddp"), (3, "native"), (4, "ddp")]


def in_turns(names: Iterable[str]) -> list[Any]:
    """Every case in each of WAYS: one of them at every change, which its name tells, all by night."""
    return [
        pytest.param(name, *way, marks=[pytest.mark.nightly] if i != turn(name, len(WAYS)) else [])
        for name in names
        for i, way in enumerate(WAYS)
    ]


def register(cases: dict[str, Case], model: Callable[[], nn.Module]) -> Callable[[Step], Step]:
    """Add a way to train `model` to `cases`: it yields the losses to call backward on, in order."""

    def add(step: Step) -> Step:
        cases[step.__name__] = model, step
        return step

    return add


class Classifier(nn.Module):
    """8 features, 3 classes, and room for trouble."""

    def __init__(self, *middle: nn.Module) -> None:
        super().__init__()
        self.first = nn.Linear(8, 6)
        self.middle = nn.Sequential(*middle)
        self.head = nn.Linear(6, 3)
        self.never_used = nn.Linear(2, 2)

    def forward(self, x: Tensor) -> Tensor:
        return self.head(self.middle(torch.tanh(self.first(x))))  # type: ignore[no-any-return]


def linear() -> nn.Module:
    return nn.Sequential(nn.Linear(8, 6), nn.Tanh(), nn.Linear(6, 3))


class Checkpointed(Classifier):
    """Computes its middle again in the backward, dropout included."""

    reentrant = False

    def forward(self, x: Tensor) -> Tensor:
        y = checkpoint(self.middle, torch.tanh(self.first(x)), use_reentrant=self.reentrant)
        return self.head(y)  # type: ignore[no-any-return]


def train_plainly(model: nn.Module, x: Tensor, y: Tensor) -> Iterator[Tensor]:
    yield F.cross_entropy(model(x), y)


_steps: WeakKeyDictionary[nn.Module, int] = WeakKeyDictionary()


def count_step(model: nn.Module) -> int:
    """The number of this step, kept outside of the model: it is tried again where it shows another number."""
    _steps[model] = _steps.get(model, 0) + 1
    return _steps[model]


def watch(model: nn.Module) -> list[int]:
    """How many samples the first layer sees, call by call."""
    seen: list[int] = []
    first: Any = next(iter(model.children()))
    forward = first.forward

    def counting(x: Tensor, *others: Any) -> Any:
        seen.append(len(x))
        return forward(x, *others)

    first.forward = counting
    return seen


def train(case: Case, reduction: Reduction = "ddp") -> list[Tensor]:
    """Parameters, gradients and buffers after each of 7 steps; batches of 12, 5 and 2 samples."""
    build, step = case
    torch.manual_seed(3)
    model = DistributedDataParallel(build(), reduction=reduction)
    optimizer = torch.optim.SGD(model.parameters(), lr=0.05)
    history: list[Tensor] = []
    for size in (12, 12, 5, 12, 12, 2, 12):
        x, y = torch.randn(size, 8), torch.randint(0, 3, (size,))
        optimizer.zero_grad()
        for loss in step(model, x, y):
            loss.backward(retain_graph=True)
        optimizer.step()
        gradients = [p.grad.to_dense() for p in model.parameters() if p.grad is not None]
        state = [value.detach().double().flatten() for value in (*model.state_dict().values(), *gradients)]
        history.append(torch.cat(state))
    return history


@cache
def _alone(case: Case) -> list[Tensor]:
    (history,) = run(1, train, case)
    return history  # type: ignore[no-any-return]


def assert_trains_the_same(case: Case, world_size: int, reduction: Reduction, tolerance: float = 1e-6) -> None:
    """Hold what `world_size` processes train against what one does; tolerance: of all that is trained, relative."""
    ranks = run(world_size, train, case, reduction)
    for step, expected in enumerate(_alone(case)):
        for history in ranks:
            assert torch.equal(history[step], ranks[0][step]), f"ranks differ at step {step}"
        difference = (ranks[0][step] - expected).norm() / expected.norm()
        assert difference <= tolerance, f"step {step}: {difference:.1e}"


def rows_seen(model: nn.Module, arguments: tuple[Tensor, ...], reduction: Reduction = "ddp") -> int:
    """How many samples this rank's forward sees of a batch."""
    seen = watch(model)
    DistributedDataParallel(model, reduction=reduction)(*arguments)
    return seen[-1]
