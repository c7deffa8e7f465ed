"""A module that cannot be divided as a whole: its parts are, and it trains what one process trains."""

from __future__ import annotations

import warnings
from collections.abc import Callable
from typing import Any

import pytest
import torch
import torch.nn.functional as F
from ddpify_runtime import DistributedDataParallel
from torch import Tensor, nn
from torch.utils.checkpoint import checkpoint

from ..processes import run


def encoder(*more: nn.Module) -> nn.Sequential:
    return nn.Sequential(nn.Linear(6, 8), nn.Tanh(), *more, nn.Linear(8, 4))


class Pairs(nn.Module):
    """A loss over all pairs of samples, as CLIP's."""

    def __init__(self) -> None:
        super().__init__()
        self.words, self.images = encoder(nn.BatchNorm1d(8)), encoder(nn.Dropout(0.3))
        self.scale = nn.Parameter(torch.tensor(2.0))

    def forward(self, x: Tensor) -> Any:
        logits = self.scale * F.normalize(self.words(x)) @ F.normalize(self.images(x.flip(1))).T
        return F.cross_entropy(logits, torch.arange(len(x)))


class ReadsSamples(nn.Module):
    """A number that Python reads, a list of parts, a weight that is used outside of its part too."""

    def __init__(self) -> None:
        super().__init__()
        self.layers = nn.ModuleList([encoder(), nn.Sequential(nn.Tanh(), nn.Linear(4, 4))])

    def forward(self, x: Tensor) -> Any:
        for layer in self.layers:
            x = layer(x)
        scale = 2.0 if float(x[0, 0]) > 0 else 0.5
        first: Any = self.layers[0]
        x += first[2].bias
        return (scale * x).square().mean() + first[0].weight.square().sum()


class Images(nn.Module):
    """A list of images, each of its own size, beside targets that are dicts, as in detection."""

    def __init__(self) -> None:
        super().__init__()
        self.backbone = nn.Sequential(nn.Conv2d(2, 4, 3), nn.ReLU(), nn.Conv2d(4, 3, 1))

    def forward(self, x: Tensor) -> Any:
        images = [each.view(2, 3, 1).expand(2, 3, 3 + place % 2) for place, each in enumerate(x)]
        batch = torch.stack([F.pad(image, (0, 4 - image.size(2))) for image in images])
        features = self.backbone(batch)
        losses = [each[..., : 1 + place % 2].square().mean() for place, each in enumerate(features)]
        return torch.stack(losses).sum() / len(images)


class Checkpoints(nn.Module):
    """Its parts are called again in the backward pass, where no rank may take its rows, nor other random numbers."""

    def __init__(self, reentrant: bool) -> None:
        super().__init__()
        self.part, self.last, self.reentrant = encoder(nn.Dropout(0.4)), encoder(), reentrant

    def forward(self, x: Tensor) -> Any:
        hidden = checkpoint(self.part, x.requires_grad_(), use_reentrant=self.reentrant)
        return (hidden - hidden.mean(0)).square().mean() + self.last(x).square().mean() / float(x.sum())


class Recomputed(nn.Module):
    """A part that checkpoints its own part."""

    def __init__(self) -> None:
        super().__init__()
        self.layers = encoder(nn.Dropout(0.4))

    def forward(self, x: Tensor) -> Any:
        return checkpoint(self.layers, x, use_reentrant=True)


class ChecksWithin(nn.Module):
    """Its part is checkpointed reentrantly, and has gradients only where its input has some."""

    def __init__(self) -> None:
        super().__init__()
        self.first, self.part, self.last = nn.Linear(6, 6), Recomputed(), encoder()

    def forward(self, x: Tensor) -> Any:
        hidden = self.part(self.first(x))
        return (hidden - hidden.mean(0)).square().mean() + self.last(x).square().mean()


class OfOneNorm(torch.autograd.Function):
    """Gives the gradient of a batch the norm 1."""

    @staticmethod
    def forward(ctx: Any, x: Tensor) -> Tensor:
        return x.clone()

    @staticmethod
    def backward(ctx: Any, *gradients: Tensor) -> Tensor:
        gradient: Tensor = gradients[0] / gradients[0].norm()
        return gradient


class Norms(nn.Module):
    def __init__(self) -> None:
        super().__init__()
        self.layers = encoder()

    def forward(self, x: Tensor) -> Any:
        return self.layers(OfOneNorm.apply(x))  # type: ignore[no-untyped-call]


class MixesGradients(nn.Module):
    """The gradient of its part's input, of no parameter in it, mixes the samples."""

    def __init__(self) -> None:
        super().__init__()
        self.first, self.part, self.last = nn.Linear(6, 6), Norms(), encoder()

    def forward(self, x: Tensor) -> Any:
        hidden = self.part(self.first(x))
        return (hidden - hidden.mean(0)).square().mean() + self.last(x).square().mean()


class Kept:
    """Like a cache of keys and values: lists that fill up."""

    def __init__(self) -> None:
        self.found: list[Tensor] = []


class Fills(nn.Module):
    def __init__(self) -> None:
        super().__init__()
        self.layers = encoder()

    def forward(self, x: Tensor, kept: Kept) -> Any:
        kept.found.append(self.layers(x))
        return kept.found[-1]


class GivesCache(nn.Module):
    """Hands an object to its part, which puts into it what it computes."""

    def __init__(self) -> None:
        super().__init__()
        self.part, self.rest = Fills(), encoder()

    def forward(self, x: Tensor) -> Any:
        kept = Kept()
        mixed = self.part(x, kept) * self.rest(x).mean(0)
        assert len(kept.found) == 1
        return (mixed + kept.found[0]).square().mean()


class Watched(nn.Module):
    """A hook that collects what a part computes."""

    def __init__(self) -> None:
        super().__init__()
        self.part, self.other = encoder(), encoder()
        self.seen: list[Tensor] = []
        self.part.register_forward_hook(lambda part, given, output: self.seen.append(output))

    def forward(self, x: Tensor) -> Any:
        self.seen.clear()
        return (self.part(x) + self.other(x)).square().mean() + torch.cat(self.seen).sum()


class Unfreezes(nn.Module):
    """Decides in its forward what is trained: all in its first step, one part in the second, all again."""

    def __init__(self) -> None:
        super().__init__()
        self.first, self.last = encoder(), encoder()
        self.step = 0

    def forward(self, x: Tensor) -> Any:
        self.first.requires_grad_(self.step != 1)
        self.step += 1
        first = self.first(x)
        return (first * self.last(x) - first.mean(0)).square().mean()


MODELS: dict[str, Callable[[], nn.Module]] = {
    "pairs": Pairs,
    "reads samples": ReadsSamples,
    "images": Images,
    "checkpoints": lambda: Checkpoints(False),
    "checkpoints, reentrant": lambda: Checkpoints(True),
    "checkpoints in a part": ChecksWithin,
    "mixes gradients": MixesGradients,
    "gives a cache": GivesCache,
    "watched": Watched,
    "unfreezes": Unfreezes,
}


def train(name: str) -> tuple[list[Tensor], int, list[str]]:
    """Parameters after each step, the fewest rows that a layer was given in the last one, and what was said."""
    torch.manual_seed(0)
    model = DistributedDataParallel(MODELS[name]().double())
    optimizer = torch.optim.SGD(model.parameters(), lr=0.3)
    rows: list[int] = []
    for part in (nn.Linear, nn.Conv2d):
        _count(part, rows)
    history = []
    with warnings.catch_warnings(record=True) as said:
        warnings.simplefilter("always")
        for _ in range(5):
            rows.clear()
            optimizer.zero_grad()
            model(torch.randn(12, 6, dtype=torch.float64)).backward()
            optimizer.step()
            history.append(nn.utils.parameters_to_vector(model.parameters()).detach().clone())
    return history, min(rows), [str(each.message) for each in said]


def _count(kind: Any, rows: list[int]) -> None:
    forward = kind.forward

    def counting(self: nn.Module, x: Tensor) -> Any:
        rows.append(len(x))
        return forward(self, x)

    kind.forward = counting


@pytest.mark.parametrize("name", MODELS)
def test_what_is_divided_in_parts_trains_what_one_process_trains(name: str) -> None:
    ((alone, _, _),) = run(1, train, name)
    for history, rows, said in run(3, train, name):
        for expected, found in zip(alone, history, strict=True):
            assert (found - expected).norm() <= 1e-12 * expected.norm()
        assert rows == 4
        assert not [text for text in said if text.startswith("ddpify")]
