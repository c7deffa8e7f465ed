"""The models that people train: how each is built from a configuration, what a batch is, and what its loss is."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

from torch import Tensor, nn

SAMPLES = 8


@dataclass(frozen=True)
class Entry:
    """A model and the plainest way to train it.

    Args:
        name: unique. library: the distribution that it comes from.
        build: makes the model; its argument is the probability of every dropout in it.
        batch: makes a global batch of so many samples from torch's random numbers.
        loss: the loss of a model for a batch.
        dropout: whether it has any. cheap: whether every change runs it. ranks: how many processes.
        double: whether it is trained in float64. tolerance: the largest difference of the parameters' movement.
        rate: the learning rate; small where batch statistics make rounding grow from step to step.
        most: the largest share of a rank, where not all of its layers can be divided (docs/models.md says why).
    """

    name: str
    library: str
    build: Callable[[float], nn.Module]
    batch: Callable[[int], Any]
    loss: Callable[[nn.Module, Any], Tensor]
    dropout: bool = False
    cheap: bool = False
    ranks: int = 2
    double: bool = True
    tolerance: float = 1e-9
    rate: float = 0.05
    most: float = 0.0

    @property
    def share(self) -> float:
        """What should go into the layers of a rank, of all that does."""
        return -(-SAMPLES // self.ranks) / SAMPLES


def own_loss(model: nn.Module, batch: dict[str, Tensor]) -> Tensor:
    """That of a model which computes its loss from labels, as those of transformers do."""
    loss: Tensor = model(**batch).loss
    return loss


def table() -> dict[str, Entry]:
    """All entries by name, of the libraries that are installed."""
    from . import diffusion, graphs, text, vision

    entries: list[Entry] = []
    for part in (text, vision, diffusion, graphs):
        entries += part.ENTRIES
    return {entry.name: entry for entry in entries}
