"""Buckets of gradients, and one all-reduce of them, where ranks use other parameters, or some of them."""

from __future__ import annotations

from collections.abc import Iterator
from functools import partial
from typing import Any

import pytest
import torch
import torch.nn.functional as F
from ddpify_runtime import DistributedDataParallel
from torch import Tensor, nn

from tests.runtime.processes import run
from tests.runtime.training import (
    Case,
    Classifier,
    Reduction,
    assert_trains_the_same,
    in_turns,
    linear,
    register,
)

CASES: dict[str, Case] = {}
case = partial(register, CASES)


@case(Classifier)
def unused_parameters(model: nn.Module, x: Tensor, y: Tensor) -> Iterator[Tensor]:
    yield F.cross_entropy(model(x), y)


@case(Classifier)
def frozen_by_turns(model: Any, x: Tensor, y: Tensor) -> Iterator[Tensor]:
    model.first.requires_grad_(bool(y.sum() % 2))
    yield F.cross_entropy(model(x), y)


@case(linear)
def frozen_after_the_forward(model: Any, x: Tensor, y: Tensor) -> Iterator[Tensor]:
    loss = F.cross_entropy(model(x), y)
    model[0].requires_grad_(False)
    yield loss
    model[0].requires_grad_(True)


class ComputesAgain(torch.autograd.Function):
    """x + layer(x), which keeps nothing for its backward: that computes the layer again, and calls backward itself."""

    @staticmethod
    def forward(ctx: Any, x: Tensor, layer: nn.Module) -> Tensor:
        ctx.x, ctx.layer = x.detach(), layer
        with torch.no_grad():
            return x + layer(x)  # type: ignore[no-any-return]

    @staticmethod
    def backward(ctx: Any, *gradients: Tensor) -> tuple[Tensor, None]:
        x = ctx.x.clone().requires_grad_()
        with torch.enable_grad():
            torch.autograd.backward(ctx.layer(x), gradients[0])
        return gradients[0] + x.grad, None


class Reversible(Classifier):
    def forward(self, x: Tensor) -> Tensor:
        return self.head(ComputesAgain.apply(torch.tanh(self.first(x)), self.middle))  # type: ignore[no-any-return, no-untyped-call]


@case(lambda: Reversible(nn.Linear(6, 6)))
def reversible(model: nn.Module, x: Tensor, y: Tensor) -> Iterator[Tensor]:
    yield F.cross_entropy(model(x), y)


class Experts(Classifier):
    """Rows choose which parameters are used, so the ranks use different ones."""

    def __init__(self) -> None:
        super().__init__()
        self.experts = nn.ModuleList(nn.Linear(3, 3) for _ in range(4))

    def forward(self, x: Tensor) -> Tensor:
        y: Tensor = super().forward(x)
        result = torch.zeros_like(y)
        choice = (x[:, 0] * 10).long().remainder(4)
        for number, expert in enumerate(self.experts):
            if (choice == number).any():
                result = result.index_add(0, (choice == number).nonzero()[:, 0], expert(y[choice == number]))
        return result


@case(Experts)
def experts(model: nn.Module, x: Tensor, y: Tensor) -> Iterator[Tensor]:
    yield F.cross_entropy(model(x), y)


@case(linear)
def clamped_by_a_hook(model: Any, x: Tensor, y: Tensor) -> Iterator[Tensor]:
    if not model[0].weight._backward_hooks:
        model[0].weight.register_hook(lambda gradient: gradient.clamp(-0.01, 0.01))
    yield F.cross_entropy(model(x), y)


@case(linear)
def interrupted_backward(model: nn.Module, x: Tensor, y: Tensor) -> Iterator[Tensor]:
    output = model(x)

    def fail(gradient: Tensor) -> None:
        raise ValueError

    output.register_hook(fail)
    with pytest.raises(ValueError):
        output.sum().backward()
    yield F.cross_entropy(model(x), y)


@case(lambda: nn.Sequential(nn.Embedding(40, 6, sparse=True), nn.Flatten(), nn.Linear(48, 3)))
def sparse_gradients(model: nn.Module, x: Tensor, y: Tensor) -> Iterator[Tensor]:
    yield F.cross_entropy(model((x.abs() * 10).long().clamp(max=39)), y)


def shared_part(reduction: Reduction, views: bool) -> list[Tensor]:
    """Models that share a layer, called before the backward, a third one from step 2 on; parameters after each step."""
    torch.manual_seed(3)
    shared = nn.Linear(6, 5)
    ours = [nn.Sequential(nn.Linear(8, 6), shared, nn.Tanh(), nn.Linear(5, 3)) for _ in range(3)]
    parameters = list(dict.fromkeys(parameter for model in ours for parameter in model.parameters()))
    optimizer = torch.optim.SGD(parameters, lr=0.1)
    history = []
    for step in range(4):
        x, y = torch.randn(11, 8), torch.randint(0, 3, (11,))
        optimizer.zero_grad()
        used = ours if step > 1 else ours[:2]
        models = [DistributedDataParallel(m, gradient_as_bucket_view=views, reduction=reduction) for m in used]
        outputs = [model(x) for model in models]
        (F.cross_entropy(outputs[0], y) + sum(output.square().sum() for output in outputs[1:]) / 5).backward()
        optimizer.step()
        history.append(torch.cat([parameter.detach().flatten() for parameter in parameters]))
    return history


@pytest.mark.parametrize(("reduction", "views"), [("ddp", False), ("ddp", True), ("native", False)])
def test_models_may_share_a_part(reduction: Reduction, views: bool) -> None:
    (alone,) = run(1, shared_part, reduction, views)
    for history in run(3, shared_part, reduction, views):
        for expected, found in zip(alone, history, strict=True):
            assert (found - expected).norm() <= 1e-6 * expected.norm()


@pytest.mark.parametrize(
    ("name", "world_size", "reduction"),
    [each for each in in_turns(CASES) if each.values != ("sparse_gradients", 3, "native")],
)
@pytest.mark.filterwarnings("ignore")
def test_trains_what_one_process_trains(name: str, world_size: int, reduction: Reduction) -> None:
    assert_trains_the_same(CASES[name], world_size, reduction)
