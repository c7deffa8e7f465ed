"""Where the samples of a forward lie, and whether they can be computed apart, is found by trying."""

from __future__ import annotations

import warnings
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
    Checkpointed,
    Classifier,
    Reduction,
    assert_trains_the_same,
    in_turns,
    register,
    rows_seen,
    watch,
)

CASES: dict[str, Case] = {}
case = partial(register, CASES)

STEP = [0]  # of a loop; no module can be seen to depend on it


class TimeFirst(nn.Module):
    """A language model of the old school: (time, batch), hidden state (layers, batch, width), flattened output."""

    def __init__(self) -> None:
        super().__init__()
        self.rnn, self.out = nn.LSTM(2, 5, num_layers=2, dropout=0.2), nn.Linear(5, 3)

    def forward(self, x: Tensor, state: Any = None) -> tuple[Tensor, Any]:
        y, state = self.rnn(x, state)
        return self.out(y).view(-1, 3), state


@case(TimeFirst)
def time_first(model: nn.Module, x: Tensor, y: Tensor) -> Iterator[Tensor]:
    sequence = x.view(len(x), 4, 2).transpose(0, 1).contiguous()
    _, state = model(sequence)
    output, _ = model(sequence, tuple(part.detach() for part in state))
    yield F.cross_entropy(output, y.repeat(4))


class HiddenFirst(nn.Module):
    """Takes the hidden state before the batch, as old tutorials do; its samples are in the second dimension."""

    def __init__(self) -> None:
        super().__init__()
        self.cell = nn.GRU(4, 5, batch_first=True)
        self.head = nn.Linear(5, 3)

    def forward(self, hidden: Tensor, x: Tensor) -> Tensor:
        return self.head(self.cell(x, hidden)[0][:, -1])  # type: ignore[no-any-return]


@case(HiddenFirst)
def hidden_first(model: nn.Module, x: Tensor, y: Tensor) -> Iterator[Tensor]:
    yield F.cross_entropy(model(x.new_zeros(1, len(x), 5), x.view(-1, 2, 4)), y)


class AlikeByAccident(nn.Module):
    """All samples have the same entry of a code book, and a number over the batch besides, as for the load of experts.

    Its mean over a part is that over the whole; the gradients of the samples are so where shares are of one size.
    """

    def __init__(self) -> None:
        super().__init__()
        self.first, self.gate, self.head = nn.Linear(8, 6), nn.Linear(6, 3), nn.Linear(6, 3)

    def forward(self, x: Tensor) -> tuple[Tensor, Tensor]:
        hidden = self.first(x)
        hidden = hidden + (torch.ones(6) - hidden).detach()
        chosen = self.gate(hidden).softmax(1)
        load = torch.stack([(chosen.argmax(1) == expert).float().mean() for expert in range(3)])
        return self.head(hidden), (load * chosen.mean(0)).sum()


@case(AlikeByAccident)
def alike_by_accident(model: nn.Module, x: Tensor, y: Tensor) -> Iterator[Tensor]:
    output, balance = model(x)
    yield F.cross_entropy(output, y) + balance


TEMPERATURE = torch.ones(1, requires_grad=True)


class UsesAForeignTensor(Classifier):
    """Its forward uses a trained tensor that it does not own."""

    def __init__(self) -> None:
        super().__init__()
        self.unregistered = [TEMPERATURE]

    def forward(self, x: Tensor) -> Tensor:
        return super().forward(x) * self.unregistered[0]


@case(UsesAForeignTensor)
def foreign_tensor(model: nn.Module, x: Tensor, y: Tensor) -> Iterator[Tensor]:
    yield F.cross_entropy(model(x), y)
    assert TEMPERATURE.grad is not None
    TEMPERATURE.data.sub_(0.1 * TEMPERATURE.grad)
    TEMPERATURE.grad = None


class BatchCoupled(Classifier):
    """Looks at the other samples."""

    def forward(self, x: Tensor) -> Tensor:
        return super().forward(x - 0.01 * x.mean(0))


@case(BatchCoupled)
def batch_coupled(model: nn.Module, x: Tensor, y: Tensor) -> Iterator[Tensor]:
    yield F.cross_entropy(model(x), y)


class MixesLater(Classifier):
    """Mixes samples with a strength that is learnt from zero."""

    def __init__(self) -> None:
        super().__init__()
        self.strength = nn.Parameter(torch.zeros(()))

    def forward(self, x: Tensor) -> Tensor:
        y: Tensor = super().forward(x)
        return y + self.strength * y.mean(0)


@case(MixesLater)
def mixing_from_zero(model: nn.Module, x: Tensor, y: Tensor) -> Iterator[Tensor]:
    yield F.cross_entropy(model(x), y)


class UnitGradient(torch.autograd.Function):
    """The identity, with a backward that looks at the whole batch."""

    @staticmethod
    def forward(ctx: Any, x: Tensor) -> Tensor:
        return x.clone()

    @staticmethod
    def backward(ctx: Any, *gradients: Tensor) -> Tensor:
        gradient = gradients[0]
        scaled: Tensor = gradient / gradient.norm()
        return scaled


class OwnBackward(Classifier):
    def forward(self, x: Tensor) -> Tensor:
        return UnitGradient.apply(super().forward(x))  # type: ignore[no-any-return, no-untyped-call]


@case(OwnBackward)
def backward_that_mixes(model: nn.Module, x: Tensor, y: Tensor) -> Iterator[Tensor]:
    yield F.cross_entropy(model(x), y)


class ChangesItsWays(Classifier):
    """Starts to look at other samples after a while."""

    def forward(self, x: Tensor) -> Tensor:
        return super().forward(x - x.mean(0) if STEP[0] > 8 else x)


def change() -> str:
    model = DistributedDataParallel(ChangesItsWays())
    try:
        for STEP[0] in range(16):
            model(torch.randn(12, 8))
    except RuntimeError as error:
        return str(error)
    return ""


def test_a_model_that_begins_to_mix_samples_is_an_error() -> None:
    for message in run(2, change):
        assert "ChangesItsWays" in message and "depend on the rest of the batch" in message


class Reentrant(Checkpointed):
    reentrant = True


def reason() -> str:
    model = DistributedDataParallel(Reentrant())
    with warnings.catch_warnings(record=True) as said:
        warnings.simplefilter("always")
        model(torch.randn(12, 8))
    return " ".join(str(each.message) for each in said)


def test_reentrant_checkpointing_is_named() -> None:
    for said in run(2, reason):
        assert "Reentrant runs whole" in said and "use_reentrant=True" in said


@pytest.mark.parametrize(("name", "world_size", "reduction"), in_turns(CASES))
@pytest.mark.filterwarnings("ignore")
def test_trains_what_one_process_trains(name: str, world_size: int, reduction: Reduction) -> None:
    assert_trains_the_same(CASES[name], world_size, reduction)


def test_samples_may_be_in_the_second_dimension() -> None:
    assert run(3, rows_seen, HiddenFirst(), (torch.zeros(1, 12, 5), torch.randn(12, 2, 4))) == [4, 4, 4]


class Transposed(nn.Linear):
    """Its samples come second, beside as many features as a trial may have rows."""

    def forward(self, x: Tensor) -> Tensor:
        return super().forward(x).t() * 2


def small_batches() -> tuple[list[int], list[int]]:
    """How many samples a rank's forward sees of batches of five, with gradients and without."""
    seen = watch(nn.Sequential(model := Transposed(8, 4)))
    DistributedDataParallel(model)
    for _ in range(5):
        model(torch.randn(5, 8)).sum().backward()
    trained = [*seen]
    with torch.no_grad():
        model(torch.randn(5, 8))
    return trained[-1:], seen[-1:]


def test_as_many_features_as_rows() -> None:
    assert run(2, small_batches) == [([3], [3]), ([2], [2])]
