"""A forward that decides by all samples of its batch is divided, and decides alike on every rank."""

from __future__ import annotations

import warnings
from collections.abc import Callable
from typing import Any

import torch
import torch.nn.functional as F
from ddpify_runtime import DistributedDataParallel
from torch import Tensor, nn
from torch.nn.utils import rnn
from torch.utils.checkpoint import checkpoint

from tests.runtime.processes import run

Decide = Callable[[Tensor, Tensor], Tensor]

# Of inputs (samples, 6) and a mask of them: what one process makes of the inputs.
DIVIDED: dict[str, Decide] = {
    "all": lambda x, mask: x if mask.all() else 2 * x * mask,
    "any": lambda x, mask: -x if torch.any(~mask) else x,
    "not all": lambda x, mask: x * 0.5 if not (mask == 1).all() else x,
    "a sum beside its size": lambda x, mask: x if mask.sum() == mask.numel() else 2 * x * mask,
    "of integers": lambda x, mask: x if mask.long().sum() == mask.numel() else 2 * x * mask,
    "sums of some columns": lambda x, mask: (
        x if mask[:, :3].sum() == 3 * len(x) or (mask[:, :5].sum() == 5 * len(x)) else x * mask
    ),
    "the longest": lambda x, mask: F.pad(x[:, : mask.sum(1).max()], (0, 6))[:, :6],
    "the shortest": lambda x, mask: x * (1 + int(torch.min(mask.sum(1)))),
    "a selection that a rank may lack": lambda x, mask: (
        x / (1 + int(mask.sum(1)[~mask.all(1)].max())) if (~mask).any() else x
    ),
    "a search": lambda x, mask: x if False in mask[:, [-1, 0]] else x * 0.5,
    "a mean of what counts": lambda x, mask: x / 3 if (mask * mask).any() else x,
}
WHOLE: dict[str, Decide] = {
    "the largest of fractions": lambda x, mask: x / 4 if x.abs().max() > 2.5 else x,
    "a count": lambda x, mask: x / 4 if mask.sum() < 100 else x,
    "in what is checkpointed": lambda x, mask: _checkpointed(x, mask),
}


def _checkpointed(x: Tensor, mask: Tensor) -> Tensor:
    def part(given: Tensor) -> Tensor:
        return torch.tanh(given) if mask.all() else torch.sin(given)

    output: Tensor = checkpoint(part, x, use_reentrant=False)
    return output


class Net(nn.Module):
    def __init__(self, decide: Decide) -> None:
        super().__init__()
        self.first, self.last, self.decide = nn.Linear(6, 6), nn.Linear(6, 3), decide

    def forward(self, x: Tensor, mask: Tensor, y: Tensor) -> Any:
        logits = self.last(torch.tanh(self.first(self.decide(x, mask))))
        each = F.cross_entropy(logits, y, reduction="none")
        counts = mask.any(1)
        return logits, (each * counts).sum() / counts.sum()


def masks() -> list[Tensor]:
    """All, all but one of a sample that rank 1 has, half of them so that a count is a part's size, some, all."""
    full = torch.ones(12, 6, dtype=torch.bool)
    one, half, some = full.clone(), full.clone(), full.clone()
    one[3, 5:] = False
    half[:, 3:] = False
    some[torch.arange(12), torch.arange(12) % 5] = False
    return [full, one, half, some, full]


def train() -> list[tuple[Tensor, list[str]]]:
    results = []
    for decide in (*DIVIDED.values(), *WHOLE.values()):
        torch.manual_seed(0)
        model = DistributedDataParallel(Net(decide))
        optimizer = torch.optim.SGD(model.parameters(), lr=0.5)
        with warnings.catch_warnings(record=True) as said:
            warnings.simplefilter("always")
            for mask in masks():
                _, loss = model(torch.randn(12, 6), mask, torch.randint(3, (12,)))
                optimizer.zero_grad()
                loss.backward()
                optimizer.step()
        texts = [str(each.message) for each in said if str(each.message).startswith("ddpify")]
        results.append((torch.nn.utils.parameters_to_vector(model.parameters()).detach(), texts))
    return results


def test_a_decision_by_all_samples_is_that_of_one_process() -> None:
    alone = run(1, train)[0]
    for world_size in (2, 3):
        for found in run(world_size, train):
            for name, (expected, _), (parameters, said) in zip((*DIVIDED, *WHOLE), alone, found, strict=True):
                assert (parameters - expected).norm() <= 1e-6 * expected.norm(), (name, world_size)
                assert len(said) == (name in WHOLE), (name, said)


class Packed(nn.Module):
    """The largest over time, of what was packed: zeros behind a sequence count."""

    def __init__(self) -> None:
        super().__init__()
        self.rnn, self.last = nn.GRU(6, 4, batch_first=True), nn.Linear(4, 3)

    def forward(self, x: Tensor, lengths: Tensor) -> Tensor:
        packed = rnn.pack_padded_sequence(x, lengths, batch_first=True, enforce_sorted=False)
        states, _ = rnn.pad_packed_sequence(self.rnn(packed)[0], batch_first=True)
        return self.last(states.amax(1))  # type: ignore[no-any-return]


def train_packed() -> Tensor:
    torch.manual_seed(0)
    model = DistributedDataParallel(Packed())
    optimizer = torch.optim.SGD(model.parameters(), lr=0.5)
    for short in ([], [1, 3, 5, 7, 9, 11], range(1, 12), [0]):
        lengths = torch.full((12,), 5)
        lengths[list(short)] = 3
        loss = F.cross_entropy(model(torch.randn(12, 5, 6), lengths), torch.randint(3, (12,)))
        optimizer.zero_grad()
        loss.backward()
        optimizer.step()
    return torch.nn.utils.parameters_to_vector(model.parameters()).detach()


def test_what_was_packed_is_padded_to_the_longest_of_all_ranks() -> None:
    (alone,) = run(1, train_packed)
    for world_size in (2, 3):
        for found in run(world_size, train_packed):
            assert (found - alone).norm() <= 1e-6 * alone.norm()
