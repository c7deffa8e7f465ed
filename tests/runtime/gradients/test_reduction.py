"""Gradients that travel in many buckets, and passes that a reducer of one backward for each forward does not know."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from typing import Any

import pytest
import torch
import torch.nn.functional as F
from ddpify_runtime import DistributedDataParallel
from ddpify_runtime.gradients import bucket
from torch import Tensor, nn
from torch.utils.checkpoint import checkpoint

from ..processes import run

Pass = Callable[[nn.Module, Tensor, Tensor, int], Iterator[None]]


class Experts(nn.Module):
    """Two layers for samples of two kinds, so that a rank may have samples for one of them only; another is unused."""

    def __init__(self) -> None:
        super().__init__()
        self.first, self.second, self.unused = nn.Linear(8, 6), nn.Linear(8, 6), nn.Linear(8, 6)
        self.words = nn.Embedding(10, 6, sparse=True)
        self.narrow = nn.Linear(6, 3).double()

    def forward(self, x: Tensor) -> Tensor:
        kinds = x[:, 0] > 0
        made = torch.where(kinds[:, None], self.first(x), self.second(x)) + self.words((x[:, 1].abs() * 3).long())
        scores: Tensor = self.narrow(made.double())
        return scores


def ordinary(model: nn.Module, x: Tensor, y: Tensor, step: int) -> Iterator[None]:
    F.cross_entropy(model(x), y).backward()
    yield


def accumulated(model: nn.Module, x: Tensor, y: Tensor, step: int) -> Iterator[None]:
    """Two backwards for a step, gradients set to zero rather than None, with the same graph twice."""
    loss = F.cross_entropy(model(x), y)
    loss.backward(retain_graph=True)
    (2 * loss).backward()
    yield
    for parameter in model.parameters():
        if parameter.grad is not None:
            parameter.grad.detach().zero_()


def broken_off(model: nn.Module, x: Tensor, y: Tensor, step: int) -> Iterator[None]:
    """A pass that raises in its midst, on every rank, before one that counts."""

    def stop(_: Tensor) -> None:
        raise KeyError

    output = model(x)
    if step == 2:
        handle = next(model.children()).weight.register_hook(stop)  # type: ignore[operator]
        with pytest.raises(KeyError):
            F.cross_entropy(output, y).backward(retain_graph=True)
        handle.remove()
        for parameter in model.parameters():
            parameter.grad = None
    F.cross_entropy(output, y).backward()
    yield


def with_a_graph(model: nn.Module, x: Tensor, y: Tensor, step: int) -> Iterator[None]:
    """Gradients that could be differentiated again."""
    F.cross_entropy(model(x), y).backward(create_graph=True)
    for parameter in model.parameters():
        if parameter.grad is not None:
            parameter.grad = parameter.grad.detach()
    yield


def asked_for_only(model: nn.Module, x: Tensor, y: Tensor, step: int) -> Iterator[None]:
    """torch.autograd.grad reduces nothing, and leaves no gradient behind."""
    weights = [parameter for parameter in model.parameters() if parameter.requires_grad]
    torch.autograd.grad(F.cross_entropy(model(x), y), weights, allow_unused=True)
    assert all(parameter.grad is None for parameter in weights)
    yield from ordinary(model, x, y, step)


def layers() -> nn.Module:
    return nn.Sequential(nn.Linear(8, 16), nn.Tanh(), nn.Linear(16, 6), nn.Tanh(), nn.Linear(6, 3))


def channels_last() -> nn.Module:
    convolution: Any = nn.Conv2d(2, 4, 2, padding=1)
    convolution.to(memory_format=torch.channels_last)
    return nn.Sequential(nn.Unflatten(1, (2, 2, 2)), convolution, nn.Flatten(), nn.Linear(36, 3))


CASES: dict[str, tuple[Callable[[], nn.Module], Pass]] = {
    "experts": (Experts, ordinary),
    "layers": (layers, ordinary),
    "channels_last": (channels_last, ordinary),
    "accumulated": (layers, accumulated),
    "accumulated_experts": (Experts, accumulated),
    "broken_off": (layers, broken_off),
    "with_a_graph": (layers, with_a_graph),
    "asked_for_only": (layers, asked_for_only),
    "asked_for_experts": (Experts, asked_for_only),
}


def train(name: str, size: int, views: bool) -> list[Tensor]:
    """Parameters and gradients after each of 4 steps. size: bytes of a bucket."""
    bucket._FIRST = bucket._LIMIT = size
    build, backward = CASES[name]
    torch.manual_seed(3)
    model = DistributedDataParallel(build(), gradient_as_bucket_view=views)
    optimizer = torch.optim.SGD(model.parameters(), lr=0.05)
    history: list[Tensor] = []
    for step, samples in enumerate((12, 7, 12, 5)):
        x, y = torch.randn(samples, 8), torch.randint(0, 3, (samples,))
        if step == 1:
            x[:, 0] = -1  # nothing for the first expert, on any rank
        passed = backward(model, x, y, step)
        next(passed)
        optimizer.step()
        gradients = [p.grad.to_dense() for p in model.parameters() if p.grad is not None]
        state = [value.detach().double().flatten() for value in (*model.state_dict().values(), *gradients)]
        history.append(torch.cat(state))
        if not list(passed) and backward is not accumulated:
            optimizer.zero_grad()
    return history


@pytest.mark.parametrize("views", [False, True])
@pytest.mark.parametrize("size", [40, 2**20])
@pytest.mark.parametrize("name", CASES)
@pytest.mark.filterwarnings("ignore")
def test_any_pass_is_reduced_in_any_buckets(name: str, size: int, views: bool) -> None:
    (alone,) = run(1, train, name, size, views)
    ranks = run(3, train, name, size, views)
    for step, expected in enumerate(alone):
        for history in ranks:
            assert torch.equal(history[step], ranks[0][step]), f"ranks differ at step {step}"
        difference = (ranks[0][step] - expected).norm() / expected.norm()
        assert difference <= 1e-6, f"step {step}: {difference:.1e}"


class Twice(nn.Module):
    """A layer that is used twice, each time computed again in the backward, by a backward of its own; so the model runs
    whole, but for its head."""

    def __init__(self) -> None:
        super().__init__()
        self.first, self.layer, self.head = nn.Linear(8, 8), nn.Linear(8, 8), nn.Sequential(nn.Linear(8, 3))

    def forward(self, x: Tensor) -> Tensor:
        x = self.first(x)
        for _ in range(2):
            x = checkpoint(self.layer, x, use_reentrant=True)
        made: Tensor = self.head(x)
        return made


def reentrant(size: int) -> str:
    bucket._FIRST = bucket._LIMIT = size
    model = DistributedDataParallel(Twice())
    try:
        F.cross_entropy(model(torch.randn(6, 8)), torch.arange(6) % 3).backward()
    except RuntimeError as error:
        return str(error)
    return ""


@pytest.mark.filterwarnings("ignore")
def test_what_was_sent_too_early_is_said() -> None:
    for said in run(2, reentrant, 40):
        assert "twice in one backward" in said and "use_reentrant=False" in said
    assert run(2, reentrant, 2**20) == ["", ""]  # it was not sent yet


def held() -> tuple[Tensor, Tensor]:
    """A gradient that was kept from the first step, and what it was."""
    torch.manual_seed(0)
    model = DistributedDataParallel(layers())
    kept = copy = torch.zeros(())
    for step in range(3):
        F.cross_entropy(model(torch.randn(6, 8)), torch.arange(6) % 3).backward()
        if step == 0:
            gradient = next(model.parameters()).grad
            assert gradient is not None
            kept, copy = gradient, gradient.clone()
        for parameter in model.parameters():
            parameter.grad = None
    return kept, copy


def test_a_gradient_that_was_kept_stays_as_it_was() -> None:
    for kept, copy in run(2, held):
        assert torch.equal(kept, copy)
