"""Which uses of the numbers of its samples keep a forward from being divided."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np
import pytest
import torch
from ddpify_runtime.trial.reads import Reads, ReadsSamples
from torch import Tensor, nn
from torch.nn.utils import rnn

Forward = Callable[[Tensor, Tensor], Any]

READS: dict[str, Forward] = {
    "if": lambda x, lengths: 1 if (x > 1).any(1)[0] else 2,
    "int": lambda x, lengths: int(lengths[1]),
    "float": lambda x, lengths: float(x.norm()),
    "item": lambda x, lengths: (x.max() * 2).item(),
    "a list": lambda x, lengths: max(lengths.tolist()),
    "one sample": lambda x, lengths: lengths[0].item(),
    "each sample": lambda x, lengths: [x[i, :length] for i, length in enumerate(lengths)],
    "numpy": lambda x, lengths: x.numpy().max(),
    "numpy's own way": lambda x, lengths: np.asarray(x).max(),
    "a search for a tensor": lambda x, lengths: lengths[0] in lengths,
    "a new tensor's size": lambda x, lengths: x.new_zeros((lengths[0],)),  # type: ignore[arg-type]
    "a scale beside lengths": lambda x, lengths: nn.utils.rnn.pack_padded_sequence(
        x[..., None] / x.max().item(), lengths.tolist()
    ),
    "a comparison": lambda x, lengths: torch.equal(x, x + 1),
    "the end of a slice": lambda x, lengths: x[:, : lengths[1]],
    "an index of a list": lambda x, lengths: [0, 1, 2, 3, 4][lengths[1]],
    "a size": lambda x, lengths: torch.arange(lengths[1]),  # type: ignore[call-overload]
    "a count": lambda x, lengths: 1 if (x > 3).sum() == 7 else 2,
    "a count beside a size": lambda x, lengths: (x > 3).float().sum().item() == x.numel(),
    "after a change in place": lambda x, lengths: torch.zeros(()).add_(x.max()).item(),
}
# Alike for the whole and its parts as long as the bound is not reached.
USES: dict[str, Forward] = {
    "a scale": lambda x, lengths: x / x.abs().max().clamp(min=99),
    "a choice": lambda x, lengths: torch.where(x.max() > 99, x / 255, x),
    "a bound": lambda x, lengths: x.clamp(max=99 + x.max()),
    "by a function in Python": lambda x, lengths: torch.einsum("ij,->ij", x, x.max().clamp(min=99)),
    "in place": lambda x, lengths: x.clone().sub_(torch.relu(x.max() - 99)),
}
SIZES: dict[str, Forward] = {
    "selected rows": lambda x, lengths: x[lengths > 2].sum(),
    "a number for each kind": lambda x, lengths: torch.bincount(lengths),
}


def checks(x: Tensor, lengths: Tensor) -> Tensor:
    assert lengths.max() < 9
    if (x < 0).any() or x.isnan().any():
        raise ValueError("out of range")
    return x


def packs(x: Tensor, lengths: Tensor) -> Any:
    return rnn.pack_padded_sequence(x[..., None], lengths.numpy().tolist(), batch_first=True, enforce_sorted=False)


NOTHING: dict[str, Forward] = {
    "a layer": lambda x, lengths: nn.GRU(5, 2)(x[None]),
    "a loss, which is that of the whole": lambda x, lengths: x.mean().item(),
    "a decision by all": lambda x, lengths: 1 if (x > 1).any() else 2,
    "the longest": lambda x, lengths: x[:, : lengths.max()] / int(torch.max(lengths)),
    "by a loss": lambda x, lengths: x / x.mean(),
    "a weight": lambda x, lengths: torch.ones(3).max().item(),
    "a number of its form": lambda x, lengths: x / x.new_tensor(2.0) / torch.tensor(3).type_as(x),
    "a number of its device": lambda x, lengths: x * torch.full_like(x[0, 0], 2.0),
    "what can only raise": checks,
    "lengths that are packed": packs,
    "the checks of torch": lambda x, lengths: torch.distributions.Normal(x, x.abs() + 1),
}


def samples() -> tuple[Tensor, Tensor]:
    return torch.arange(20.0).view(4, 5), torch.tensor([1, 4, 2, 3])


@pytest.mark.parametrize("name", READS)
def test_a_number_that_is_read_is_an_error(name: str) -> None:
    given = samples()
    with pytest.raises(ReadsSamples, match=r"^test_reads\.py:\d+ reads numbers of its samples"), Reads(given):
        READS[name](*given)


@pytest.mark.parametrize("name", USES)
def test_a_number_of_the_batch_that_meets_its_samples_is_an_error(name: str) -> None:
    given = samples()
    with pytest.raises(ReadsSamples, match=r"^test_reads\.py:\d+ uses a number of the whole batch"), Reads(given):
        USES[name](*given)


def test_a_number_of_the_batch_is_no_output() -> None:
    """A penalty that is zero until something is large."""
    given = samples()
    with Reads(given) as reads:
        reads.require_none([given[0] * 2, given[0].mean(), given[0][0, 0]])
        with pytest.raises(ReadsSamples, match="returns a number of the whole batch"):
            reads.require_none([given[0], {"penalty": torch.relu(given[0].max() - 99)}])


@pytest.mark.parametrize("name", [*SIZES, *NOTHING])
def test_what_is_no_obstacle(name: str) -> None:
    given = samples()
    with Reads(given) as reads:
        (SIZES | NOTHING)[name](*given)
    assert reads.sizes == (name in SIZES)
