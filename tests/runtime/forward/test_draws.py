"""What a divided forward draws: with DDPIFY_RANDOM=original the numbers of one process."""

from __future__ import annotations

import os
from collections.abc import Iterator
from functools import partial

import pytest
import torch
import torch.nn.functional as F
from ddpify_runtime import DistributedDataParallel
from torch import Tensor, nn
from torch.nn.utils.rnn import pack_padded_sequence

from tests.runtime.forward.test_rank_stream import LIBRARY
from tests.runtime.processes import run
from tests.runtime.training import (
    Case,
    Checkpointed,
    Classifier,
    Reduction,
    assert_trains_the_same,
    in_turns,
    register,
    rows_seen,
)

CASES: dict[str, Case] = {}
assert LIBRARY  # whose kernel draws
case = partial(register, CASES)


@case(lambda: Classifier(nn.Dropout(0.4)))
def dropout(model: nn.Module, x: Tensor, y: Tensor) -> Iterator[Tensor]:
    yield F.cross_entropy(model(x), y)


class Noisy(nn.Module):
    """A variational autoencoder's noise, and a categorical draw."""

    def __init__(self) -> None:
        super().__init__()
        self.to_code, self.back = nn.Linear(8, 4), nn.Linear(4, 8)

    def forward(self, x: Tensor) -> tuple[Tensor, Tensor]:
        code = self.to_code(x)
        noisy = code + torch.randn_like(code) + torch.bernoulli(torch.sigmoid(code.detach()))
        return self.back(noisy), code


@case(Noisy)
def noise_in_forward(model: nn.Module, x: Tensor, y: Tensor) -> Iterator[Tensor]:
    recovered, code = model(x)
    yield 0.01 * (F.mse_loss(recovered, x, reduction="sum") + code.square().sum())


@case(lambda: Checkpointed(nn.Linear(6, 6), nn.Dropout(0.3)))
def checkpointed_dropout(model: nn.Module, x: Tensor, y: Tensor) -> Iterator[Tensor]:
    yield F.cross_entropy(model(x), y)


class TwoPlaces(Classifier):
    """Drops of samples and of what all samples share, both of two dimensions."""

    def __init__(self) -> None:
        super().__init__()
        self.places = nn.Parameter(torch.randn(1, 6))

    def forward(self, x: Tensor) -> Tensor:
        places = F.dropout(self.places, 0.4)
        hidden = F.dropout(torch.tanh(self.first(x)), 0.4)
        return self.head(hidden + places)  # type: ignore[no-any-return]


@case(TwoPlaces)
def drops_in_two_ways(model: nn.Module, x: Tensor, y: Tensor) -> Iterator[Tensor]:
    yield F.cross_entropy(model(x), y)


class Chosen(Classifier):
    """An expert that drops what it gives, for the samples that it gets."""

    def forward(self, x: Tensor) -> Tensor:
        hidden = torch.tanh(self.first(x))
        chosen = (x[:, 0] > 0).nonzero().flatten()
        given = F.dropout(hidden[chosen] * 2, 0.4)
        return self.head(hidden.index_add(0, chosen, given))  # type: ignore[no-any-return]


@case(Chosen)
def drops_of_chosen_samples(model: nn.Module, x: Tensor, y: Tensor) -> Iterator[Tensor]:
    yield F.cross_entropy(model(x), y)


class Packed(Classifier):
    """A recurrent network that drops between its layers, of packed sequences."""

    def __init__(self) -> None:
        super().__init__()
        self.rnn = nn.GRU(1, 6, 2, dropout=0.4)

    def forward(self, x: Tensor) -> Tensor:
        lengths = 1 + (x[:, :5] > 0).sum(1)
        packed = pack_padded_sequence(torch.tanh(self.first(x)).T[..., None], lengths, enforce_sorted=False)
        return self.head(self.rnn(packed)[1][-1])  # type: ignore[no-any-return]


@case(Packed)
def drops_of_packed_sequences(model: nn.Module, x: Tensor, y: Tensor) -> Iterator[Tensor]:
    yield F.cross_entropy(model(x), y)


class Shuffled(Classifier):
    """Adds to what an expert gets what it gives for another sample, by chance."""

    def forward(self, x: Tensor) -> Tensor:
        hidden = torch.tanh(self.first(x))
        chosen = (x[:, 0] > 0).nonzero().flatten()
        others = chosen[torch.rand(len(chosen)).argsort()]
        return self.head(hidden.index_add(0, chosen, hidden[others]))  # type: ignore[no-any-return]


class OfValues(Classifier):
    """Drops the same in all samples that have the same value."""

    def forward(self, x: Tensor) -> Tensor:
        values, which = (x[:, 0] * 4).round().unique(return_inverse=True)
        return self.head(torch.tanh(self.first(x)) * F.dropout(torch.ones_like(values), 0.4)[which, None])  # type: ignore[no-any-return]


SEEN = [0]  # how many samples the last forward saw


class Attention(Classifier):
    """Drops in a kernel, but for float64, which has none, as that of attention on a GPU."""

    drops_all = 0.0  # with which probability nothing but its head is left, for all samples alike

    def forward(self, x: Tensor) -> Tensor:
        SEEN[0] = len(x)
        hidden = torch.tanh(self.first(x))
        if self.drops_all and torch.rand(()) < self.drops_all:
            return self.head(hidden)  # type: ignore[no-any-return]
        if hidden.dtype == torch.float64:
            return self.head(F.dropout(hidden, 0.4))  # type: ignore[no-any-return]
        with torch.no_grad():
            kept = torch.ops.ddpify_tests.attention(torch.ones_like(hidden), 0.4)
        return self.head(hidden * kept)  # type: ignore[no-any-return]


class LeftOutAttention(Attention):
    drops_all = 0.5


@case(Attention)
def drops_in_a_kernel(model: nn.Module, x: Tensor, y: Tensor) -> Iterator[Tensor]:
    yield F.cross_entropy(model(x), y)


@pytest.mark.parametrize(("name", "world_size", "reduction"), in_turns(CASES))
@pytest.mark.filterwarnings("ignore")
def test_trains_what_one_process_trains(name: str, world_size: int, reduction: Reduction) -> None:
    assert_trains_the_same(CASES[name], world_size, reduction)


def shares(build: type[nn.Module], random: str) -> int:
    os.environ["DDPIFY_RANDOM"] = random
    torch.manual_seed(0)  # few rows, as a trial has, need not share a value
    return rows_seen(build(), (torch.randn(12, 8),))


@pytest.mark.parametrize("build", [TwoPlaces, Chosen, Packed])
def test_each_rank_draws_for_its_own_samples(build: type[nn.Module]) -> None:
    assert run(3, shares, build, "") == [4, 4, 4]


@pytest.mark.filterwarnings("ignore")
def test_the_numbers_of_one_process_are_not_known_where_sizes_depend_on_samples() -> None:
    assert run(3, shares, TwoPlaces, "original") == [4, 4, 4]
    assert run(3, shares, Chosen, "original") == [12, 12, 12]


@pytest.mark.filterwarnings("ignore")
@pytest.mark.parametrize("build", [Shuffled, OfValues])
def test_what_samples_share_by_chance_stays_whole(build: type[nn.Module]) -> None:
    assert run(3, shares, build, "") == [12, 12, 12]


def samples_of_last_forward(build: type[nn.Module], random: str) -> int:
    os.environ["DDPIFY_RANDOM"] = random
    torch.manual_seed(0)
    model = DistributedDataParallel(build())
    for _ in range(5):
        model(torch.randn(12, 8))
    return SEEN[0]


@pytest.mark.filterwarnings("ignore")
@pytest.mark.parametrize(
    ("build", "random", "samples"), [(Attention, "", 4), (Attention, "original", 12), (LeftOutAttention, "", 12)]
)
def test_what_a_kernel_draws_cannot_be_told_though_float64_draws_it_elsewhere(
    build: type[nn.Module], random: str, samples: int
) -> None:
    assert run(3, samples_of_last_forward, build, random) == [samples] * 3
