"""Gradients that a script asks for by itself: what is made of them is what one process makes."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import pytest
import torch
import torch.nn.functional as F
from ddpify_runtime import DistributedDataParallel, grad
from torch import Tensor, nn
from torch.autograd import grad as grad_of_torch
from torch.func import functional_call

from tests.turns import on_ranks

from ..processes import run


class Network(nn.Module):
    """weights: used instead of its own. Its `unused` part gets no gradient."""

    def __init__(self) -> None:
        super().__init__()
        torch.manual_seed(0)
        self.first, self.second, self.unused = nn.Linear(6, 8), nn.Linear(8, 4), nn.Linear(2, 2)

    def forward(self, x: Tensor, weights: list[Tensor] | None = None) -> Any:
        one, two, three, four = weights or [*self.first.parameters(), *self.second.parameters()]
        return F.linear(F.linear(x, one, two).tanh(), three, four)


class PenaltyInside(Network):
    def forward(self, x: Tensor, weights: list[Tensor] | None = None) -> Any:
        scores = super().forward(x)
        return scores, sum(each.square().sum() for each in _trained(self, scores.square().mean()))


class InnerStepOfAPart(nn.Module):
    """Its forward takes a step of its own part before it computes the scores."""

    def __init__(self) -> None:
        super().__init__()
        self.part = Network()

    def forward(self, x: Tensor) -> Any:
        gradients = _trained(self.part, self.part(x).square().mean())
        return self.part(x, _stepped(_of(self.part), gradients))


class InnerStepOfALibrary(nn.Module):
    """As libraries write it: nothing of it is converted, and nothing of ours is imported."""

    def __init__(self, create_graph: bool = True, steps: int = 1) -> None:
        super().__init__()
        torch.manual_seed(0)
        self.part = nn.Sequential(nn.Linear(6, 8), nn.Tanh(), nn.Linear(8, 8), nn.Tanh(), nn.Linear(8, 4))
        self.rate = nn.Parameter(torch.tensor(0.3))
        self.create_graph, self.steps = create_graph, steps

    def forward(self, x: Tensor, y: Tensor) -> Tensor:
        weights: dict[str, Any] = dict(self.part.named_parameters())
        for _ in range(self.steps):
            loss = F.cross_entropy(functional_call(self.part, weights, (x,)), y)
            found = grad_of_torch(loss, list(weights.values()), create_graph=self.create_graph)
            weights = {
                name: weight - self.rate * gradient
                for (name, weight), gradient in zip(weights.items(), found, strict=True)
            }
        return F.cross_entropy(functional_call(self.part, weights, (x,)), y)


class PenaltyOfALibrary(InnerStepOfALibrary):
    """It decides by itself to differentiate, whether its caller does or not."""

    def forward(self, x: Tensor, y: Tensor) -> Tensor:
        with torch.enable_grad():
            loss = F.cross_entropy(self.part(x), y)
            found = grad_of_torch(loss, list(self.part.parameters()), create_graph=True)
            penalty: Tensor = sum(each.square().sum() for each in found)  # type: ignore[assignment]
            return loss + penalty


class Adjoint(torch.autograd.Function):
    """As solvers of differential equations write it: its backward computes again, and differentiates by parameters."""

    @staticmethod
    def forward(ctx: Any, model: Any, x: Tensor, *weights: Tensor) -> Tensor:
        ctx.model = model
        ctx.save_for_backward(x, *weights)
        with torch.no_grad():
            scores: Tensor = model(x)
            return scores

    @staticmethod
    def backward(ctx: Any, *gradients: Tensor) -> tuple[Tensor | None, ...]:
        x, *weights = ctx.saved_tensors
        with torch.enable_grad():
            x = x.detach().requires_grad_()
            return None, *grad_of_torch(ctx.model(x), [x, *weights], list(gradients))


class AdjointInside(nn.Module):
    def __init__(self) -> None:
        super().__init__()
        self.start, self.part = nn.Linear(6, 6), Network()

    def forward(self, x: Tensor) -> Tensor:
        return solved(self.part, self.start(x))


def solved(model: Any, x: Tensor) -> Tensor:
    scores: Tensor = Adjoint.apply(model, x, *_of(model))  # type: ignore[no-untyped-call]
    return scores


def _of(model: Any) -> list[Tensor]:
    return [*model.first.parameters(), *model.second.parameters()]


def _trained(model: Any, loss: Tensor) -> list[Tensor]:
    return [each for each in grad(loss, _of(model), create_graph=True) if each is not None]


def _stepped(weights: list[Tensor], gradients: list[Tensor]) -> list[Tensor]:
    return [weight - 0.5 * gradient for weight, gradient in zip(weights, gradients, strict=True)]


def by_hand(model: Any, x: Tensor, y: Tensor) -> None:
    gradients = grad(F.cross_entropy(model(x), y), model.parameters(), allow_unused=True)
    for parameter, gradient in zip(model.parameters(), gradients, strict=True):
        assert (gradient is None) == any(parameter is each for each in model.unused.parameters())
        parameter.grad = gradient


def penalty(model: Any, x: Tensor, y: Tensor) -> None:
    loss = F.cross_entropy(model(x), y)
    (loss + sum(each.square().sum() for each in _trained(model, loss))).backward()


def penalty_alone(model: Any, x: Tensor, y: Tensor) -> None:
    sum(each.square().sum() for each in _trained(model, F.cross_entropy(model(x), y))).backward()  # type: ignore[union-attr]


def penalty_of_what_is_read(model: Any, x: Tensor, y: Tensor) -> None:
    """The loss is joined before it is differentiated."""
    loss = F.cross_entropy(model(x), y).log1p().exp()
    (loss * sum(each.square().sum() for each in _trained(model, loss))).backward()


def penalty_inside(model: Any, x: Tensor, y: Tensor) -> None:
    scores, extra = model(x)
    (F.cross_entropy(scores, y) + extra).backward()


def inner_step_inside(model: Any, x: Tensor, y: Tensor) -> None:
    F.cross_entropy(model(x), y).backward()


def inner_steps(model: Any, x: Tensor, y: Tensor) -> None:
    weights = _of(model)
    for _ in range(3):
        found = grad(F.cross_entropy(model(x, weights), y), weights, create_graph=True)
        weights = _stepped(weights, [each for each in found if each is not None])
    F.cross_entropy(model(x, weights), y).backward()


def inner_steps_of_the_first_order(model: Any, x: Tensor, y: Tensor) -> None:
    """The weights of each step are new leaves; what they end at is the gradient of the model."""
    weights = _of(model)
    for _ in range(3):
        found = grad(F.cross_entropy(model(x, weights), y), weights)
        weights = [
            each.detach().requires_grad_() for each in _stepped(weights, [one for one in found if one is not None])
        ]
    F.cross_entropy(model(x, weights), y).backward()
    for parameter, weight in zip(_of(model), weights, strict=True):
        parameter.grad = weight.grad


def inner_steps_by_torch(model: Any, x: Tensor, y: Tensor) -> None:
    """With respect to weights that the forward is given, which are true gradients by themselves."""
    weights = [each.detach().requires_grad_() for each in _of(model)]
    for _ in range(3):
        found = torch.autograd.grad(F.cross_entropy(model(x, weights), y), weights)
        weights = [each.detach().requires_grad_() for each in _stepped(weights, list(found))]
    for parameter, weight in zip(_of(model), weights, strict=True):
        parameter.grad = parameter.detach() - weight.detach()


def of_a_library(model: Any, x: Tensor, y: Tensor) -> None:
    model(x, y).backward()


def leaves_of_a_library(model: Any, x: Tensor, y: Tensor) -> None:
    """First order, of new leaves that take the place of the parameters."""
    part = model.part
    weights: dict[str, Tensor] = {
        name: weight.detach().clone().requires_grad_() for name, weight in part.named_parameters()
    }
    for _ in range(2):
        loss = F.cross_entropy(functional_call(part, weights, (x,)), y)
        found = grad_of_torch(loss, list(weights.values()))
        weights = {
            name: (weight - 0.5 * gradient).detach().requires_grad_()
            for (name, weight), gradient in zip(weights.items(), found, strict=True)
        }
    for name, weight in part.named_parameters():
        weight.grad = weight.detach() - weights[name].detach()


class FirstOrder(nn.Module):
    """A module of which the part is what is divided."""

    def __init__(self) -> None:
        super().__init__()
        self.part = DistributedDataParallel(InnerStepOfALibrary().part.double())


def adjoint(model: Any, x: Tensor, y: Tensor) -> None:
    F.cross_entropy(solved(model, x), y).backward()


def adjoint_beside_a_call(model: Any, x: Tensor, y: Tensor) -> None:
    (F.cross_entropy(solved(model, x), y) + F.cross_entropy(model(x), y)).backward()


def of_samples(model: Any, x: Tensor, y: Tensor) -> None:
    x = x.requires_grad_()
    scores = model(x)
    (slope,) = grad(scores.square().sum(), x, create_graph=True)
    assert slope is not None
    assert slope.shape == x.shape
    (F.cross_entropy(scores, y) + slope.square().mean()).backward()


STEPS: dict[str, tuple[Callable[[], nn.Module], Callable[[Any, Tensor, Tensor], None]]] = {
    "by hand": (Network, by_hand),
    "a penalty": (Network, penalty),
    "a penalty alone": (Network, penalty_alone),
    "a penalty of what is joined": (Network, penalty_of_what_is_read),
    "a penalty in the forward": (PenaltyInside, penalty_inside),
    "an inner step in the forward": (InnerStepOfAPart, inner_step_inside),
    "inner steps": (Network, inner_steps),
    "inner steps of the first order": (Network, inner_steps_of_the_first_order),
    "inner steps by torch": (Network, inner_steps_by_torch),
    "an inner step of a library": (InnerStepOfALibrary, of_a_library),
    "inner steps of a library": (lambda: InnerStepOfALibrary(steps=2), of_a_library),
    "inner steps of a library, of the first order": (lambda: InnerStepOfALibrary(False, 2), of_a_library),
    "a penalty of a library": (PenaltyOfALibrary, of_a_library),
    "leaves of a library": (FirstOrder, leaves_of_a_library),
    "of samples": (Network, of_samples),
    "an adjoint": (Network, adjoint),
    "an adjoint beside a call": (Network, adjoint_beside_a_call),
    "an adjoint in the forward": (AdjointInside, inner_step_inside),
}


def train(name: str) -> list[Tensor]:
    """The parameters after each step."""
    build, step = STEPS[name]
    model: Any = DistributedDataParallel(build().double())
    optimizer = torch.optim.SGD(model.parameters(), lr=0.3)
    generator = torch.Generator().manual_seed(1)
    history = []
    for _ in range(4):
        x = torch.randn(16, 6, generator=generator, dtype=torch.float64)
        y = torch.randint(4, (16,), generator=generator)
        optimizer.zero_grad()
        step(model, x, y)
        optimizer.step()
        history.append(torch.cat([parameter.detach().flatten() for parameter in model.parameters()]))
    return history


@pytest.mark.filterwarnings("ignore:ddpify")
@pytest.mark.parametrize(("name", "ranks"), on_ranks(STEPS))
def test_trains_what_one_process_trains(name: str, ranks: int) -> None:
    (alone,) = run(1, train, name)
    assert not torch.equal(alone[0], alone[-1])
    for history in run(ranks, train, name):
        for step, (ours, true) in enumerate(zip(history, alone, strict=True)):
            assert (ours - true).norm() <= 1e-13 * true.norm(), step
