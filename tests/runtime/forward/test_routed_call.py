"""Why a forward cannot be divided may differ from rank to rank; what becomes of it may not."""

from __future__ import annotations

import gc
import warnings
import weakref
from collections.abc import Callable
from copy import deepcopy
from itertools import chain
from typing import Any

import pytest
import torch
from ddpify_runtime import DistributedDataParallel
from ddpify_runtime.gradients import bucket
from torch import Tensor, nn

from ..processes import run
from ..training import watch


class FailsOnOneRank(nn.Module):
    """Cannot compute the rows of rank 1 alone, and mixes those of rank 0."""

    def __init__(self) -> None:
        super().__init__()
        self.layer = nn.Linear(4, 2)

    def forward(self, x: Tensor) -> Any:
        x.new_zeros(9).view(-1, len(x) if len(x) == 2 else 1)
        return self.layer(x - x.mean(0))


def train() -> list[float]:
    torch.manual_seed(0)
    model = DistributedDataParallel(FailsOnOneRank())
    optimizer = torch.optim.SGD(model.parameters(), lr=0.1)
    losses = []
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        for _ in range(3):
            optimizer.zero_grad()
            loss = model(torch.randn(6, 4)).square().mean()
            loss.backward()
            optimizer.step()
            losses.append(round(float(loss.detach()), 5))
    return losses


def test_ranks_that_fail_in_ways_of_their_own_do_the_same() -> None:
    (alone,) = run(1, train)
    assert run(2, train) == [alone, alone]


def traced(train: bool) -> list[float]:
    torch.manual_seed(0)
    model = DistributedDataParallel(nn.Sequential(nn.Linear(4, 3), nn.Tanh(), nn.Linear(3, 1)))
    optimizer = torch.optim.SGD(model.parameters(), lr=0.1)
    x = torch.randn(6, 4)
    for _ in range(2 * train):
        optimizer.zero_grad()
        model(x).square().mean().backward()
        optimizer.step()
    with torch.no_grad(), warnings.catch_warnings():
        warnings.simplefilter("ignore", DeprecationWarning)
        copy = torch.jit.trace(model, x)
    return [round(float(value), 5) for value in copy(torch.ones(5, 4)).detach().flatten()]


@pytest.mark.parametrize("train", [False, True])
def test_a_trace_is_of_the_forward_of_one_process(train: bool) -> None:
    (alone,) = run(1, traced, train)
    assert run(2, traced, train) == [alone, alone]


class Centred(nn.Module):
    """Mixes its samples between two parts, each of which is divided; it counts its calls, and has a setting."""

    def __init__(self) -> None:
        super().__init__()
        self.encoder = nn.Sequential(nn.Linear(4, 3), nn.Tanh())
        self.head = nn.Sequential(nn.Linear(3, 3), nn.BatchNorm1d(3), nn.Linear(3, 1))
        self.calls, self.warm = 0, True

    def forward(self, x: Tensor) -> Tensor:
        self.calls += 1
        x = self.encoder(x)
        scores: Tensor = self.head(x - x.mean(0) if self.warm else x)
        return scores


class Activated(nn.BatchNorm1d):
    """With a forward of its own."""

    def forward(self, x: Tensor) -> Tensor:
        return super().forward(x).relu()


DROPPED: dict[str, tuple[Callable[[], nn.Module], dict[str, Any]]] = {
    "layers": (lambda: nn.Sequential(nn.Linear(4, 3), nn.Dropout(0.5), nn.Linear(3, 1)), {}),
    "batch_norm": (lambda: nn.Sequential(nn.Linear(4, 3), nn.BatchNorm1d(3), Activated(3), nn.Linear(3, 1)), {}),
    "local_batch_norm": (lambda: nn.Sequential(nn.BatchNorm1d(4), nn.Linear(4, 1)), {"sync_batch_norm": False}),
    "views": (lambda: nn.Sequential(nn.Linear(4, 3), nn.Linear(3, 1)), {"gradient_as_bucket_view": True}),
    "parts": (Centred, {}),
}


def dropped(name: str) -> list[bool]:
    """Which of a model, its parts and parameters, its copy and its optimizer live after the function that made them."""
    from torch._dynamo import utils  # noqa: F401  the first optimizer imports it, and keeps the frames that it is in

    bucket._FIRST = bucket._LIMIT = 40
    build, options = DROPPED[name]

    def made() -> list[weakref.ref[Any]]:
        model = DistributedDataParallel(build(), **options)
        optimizer = torch.optim.Adam(model.parameters(), lr=0.1)
        for step in range(5):
            model.warm = step < 3  # type: ignore[assignment]
            loss = model(torch.randn(8, 4)).square().mean()
            optimizer.zero_grad()
            loss.backward()
            optimizer.step()
        model.eval()
        with torch.no_grad():
            model(torch.randn(6, 4)).sum().item()
        copy = deepcopy(model)
        copy.load_state_dict(model.state_dict())
        held = [optimizer, copy, *model.modules(), *model.parameters()]
        return [weakref.ref(each) for each in held]

    made()  # what is imported when it is first used
    gc.collect()
    gc.disable()
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        return [each() is not None for each in made()]


@pytest.mark.parametrize("name", DROPPED)
@pytest.mark.filterwarnings("ignore")
def test_a_model_that_is_dropped_is_freed_without_the_garbage_collector(name: str) -> None:
    for processes in (1, 2):
        assert not any(chain.from_iterable(run(processes, dropped, name)))


def part_alone() -> list[Any]:
    """A part that is kept, after the model that it was divided in; then in another model."""
    bucket._FIRST = bucket._LIMIT = 40
    torch.manual_seed(0)
    model = DistributedDataParallel(Centred())
    for _ in range(2):
        model(torch.randn(8, 4)).square().mean().backward()
    head: Any = model.head
    hooks, whole = bool(head[0].weight._post_accumulate_grad_hooks), weakref.ref(model)
    del model
    left = bool(head[0].weight._post_accumulate_grad_hooks)
    alone = head(torch.randn(6, 3)).sum().item()
    other = DistributedDataParallel(nn.Sequential(nn.Linear(4, 3), head))
    other.zero_grad()
    other(torch.randn(6, 4)).square().mean().backward()
    return [whole() is None, hooks, left, round(alone, 5), round(head[0].weight.grad.norm().item(), 5)]


@pytest.mark.filterwarnings("ignore")
def test_a_part_of_a_model_that_is_dropped_lives_on() -> None:
    (alone,) = run(1, part_alone)
    assert alone[:3] == [True, False, False]
    assert run(2, part_alone) == [[True, True, False, *alone[3:]]] * 2


class Scriptable(nn.Module):
    """Of a class without annotations of its own."""

    def __init__(self) -> None:
        super().__init__()
        self.body = nn.Sequential(nn.Linear(4, 6), nn.BatchNorm1d(6))
        self.head = nn.Linear(6, 2)

    def forward(self, x: Tensor) -> Any:
        return self.head(torch.relu(self.body(x)))


def scripted() -> list[Any]:
    """What the scripted and the traced module give between the steps, and how many rows the training sees."""
    torch.manual_seed(0)
    model = DistributedDataParallel(Scriptable().double())
    optimizer = torch.optim.SGD(model.parameters(), lr=0.1)
    numbers = []
    for _ in range(3):
        x = torch.randn(6, 4).double()
        optimizer.zero_grad()
        model(x).square().mean().backward()
        optimizer.step()
        model.eval()
        for other in (torch.jit.script(model), torch.jit.trace(model, x)):
            assert torch.equal(other(x), deepcopy(model)(x))
            numbers.append(round(other(x).sum().item(), 9))
        model.train()
    seen = watch(model)
    model(x)
    return [numbers, seen[-1]]


@pytest.mark.filterwarnings("ignore")
def test_a_model_is_scripted_between_its_steps() -> None:
    ((numbers, whole),) = run(1, scripted)
    assert whole == 6
    assert run(2, scripted) == [[numbers, 3]] * 2
