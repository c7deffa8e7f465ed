"""Which reads of a forward tell of the whole batch, and which of single samples."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import pytest
import torch
from ddpify_runtime.reads import Reads, ReadsSamples
from torch import Tensor, nn

OF_THE_BATCH: dict[str, Callable[[Tensor, Tensor], Any]] = {
    "if": lambda x, lengths: 1 if (x > 1).any() else 2,
    "int": lambda x, lengths: int(lengths.max()),
    "float": lambda x, lengths: float(x.norm()),
    "item": lambda x, lengths: (x.max() * 2).item(),
    "a comparison": lambda x, lengths: torch.equal(x, x + 1),
    "the end of a slice": lambda x, lengths: x[:, : lengths.max()],
    "an index of a list": lambda x, lengths: [0, 1, 2, 3, 4][lengths.max()],
    "a size": lambda x, lengths: torch.arange(lengths.max()),  # type: ignore[call-overload]
    "after a change in place": lambda x, lengths: torch.zeros(()).add_(x.max()).item(),
}
OF_A_SAMPLE: dict[str, Callable[[Tensor, Tensor], Any]] = {
    "lengths": lambda x, lengths: lengths.tolist(),
    "each length": lambda x, lengths: [x[i, :length] for i, length in enumerate(lengths)],
    "an item": lambda x, lengths: lengths[0].item(),
    "selected rows": lambda x, lengths: x[lengths > 2].sum(),
}


def checks(x: Tensor, lengths: Tensor) -> Tensor:
    assert lengths.max() < 9
    if (x < 0).any() or x.isnan().any():
        raise ValueError("out of range")
    return x


NOTHING: dict[str, Callable[[Tensor, Tensor], Any]] = {
    "a layer": lambda x, lengths: nn.GRU(5, 2)(x[None]),
    "a loss, which is that of the whole": lambda x, lengths: x.mean().item(),
    "a value": lambda x, lengths: x / x.max(),  # the trial of a division sees this
    "a weight": lambda x, lengths: torch.ones(3).max().item(),
    "what can only raise": checks,
    "the checks of torch": lambda x, lengths: torch.distributions.Normal(x, x.abs() + 1),
}


def samples() -> tuple[Tensor, Tensor]:
    return torch.arange(20.0).view(4, 5), torch.tensor([1, 4, 2, 3])


@pytest.mark.parametrize("name", OF_THE_BATCH)
def test_a_number_of_the_batch_is_an_error(name: str) -> None:
    given = samples()
    with pytest.raises(ReadsSamples, match=r"^test_reads\.py:\d+ reads a number"), Reads(given):
        OF_THE_BATCH[name](*given)


@pytest.mark.parametrize("name", [*OF_A_SAMPLE, *NOTHING])
def test_a_number_of_a_sample_may_be_a_size(name: str) -> None:
    given = samples()
    with Reads(given) as reads:
        (OF_A_SAMPLE | NOTHING)[name](*given)
    assert reads.sizes == (name in OF_A_SAMPLE)
