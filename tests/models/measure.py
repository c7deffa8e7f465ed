"""Trains a model in one process and in several; what went into its layers, and how far its parameters are apart."""

from __future__ import annotations

import gc
import math
import os
import warnings
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from typing import Any

import torch
from ddpify_runtime import DistributedDataParallel, report
from torch import Tensor, nn
from torch.nn.modules.batchnorm import _BatchNorm
from torch.utils._pytree import tree_map_only

from tests.runtime.processes import run

from .table import SAMPLES, Entry

STEPS = 5
DROPOUT = 0.1


@dataclass(frozen=True)
class Trained:
    """moved: by how much the steps changed each parameter. values: how many went into layers, in the step with fewest:
    in others a division is tried."""

    moved: Tensor
    losses: list[float]
    values: int
    said: list[str]


@dataclass(frozen=True)
class Measured:
    """difference: the largest relative one. share: of the values that go into layers, the largest of a rank."""

    difference: float
    share: float
    said: list[str]


@contextmanager
def counted(counts: list[int]) -> Iterator[None]:
    """Count the values that go into layers with weights of their own."""
    call: Any = nn.Module._call_impl

    def counting(self: nn.Module, *args: Any, **kwargs: Any) -> Any:
        weights = any(each is not None for each in self._parameters.values())
        if weights and not self._modules and not isinstance(self, _BatchNorm):  # whose call may be another one
            counts[0] += next((each.numel() for each in (*args, *kwargs.values()) if isinstance(each, Tensor)), 0)
        return call(self, *args, **kwargs)

    nn.Module._call_impl = counting  # type: ignore[method-assign]
    try:
        yield
    finally:
        nn.Module._call_impl = call  # type: ignore[method-assign]


def train(entry: Entry, dropout: float, random: str) -> Trained:
    """The plainest loop; in each of the processes that it runs in."""
    gc.unfreeze()  # trials look through the caches of the models' libraries
    os.environ["DDPIFY_RANDOM"] = random
    os.environ["DDPIFY_REPORT"] = "0"
    torch.manual_seed(0)
    with warnings.catch_warnings(record=True) as caught:
        warnings.simplefilter("always")
        model = entry.build(dropout).train()
        model = DistributedDataParallel(model.double() if entry.double else model)
        parameters = [parameter for parameter in model.parameters() if parameter.requires_grad]
        optimizer = torch.optim.SGD(parameters, lr=entry.rate)
        before = flattened(parameters)
        generator = torch.Generator().manual_seed(1)
        losses: list[float] = []
        counts = [0]
        values: list[int] = []
        with counted(counts):
            for _ in range(STEPS):
                state = torch.get_rng_state()
                torch.manual_seed(int(torch.randint(1 << 30, (), generator=generator)))
                batch = entry.batch(SAMPLES)
                torch.set_rng_state(state)
                if entry.double:
                    batch = in_float64(batch)
                counts[0] = 0
                optimizer.zero_grad()
                loss = entry.loss(model, batch)
                loss.backward()
                optimizer.step()
                losses.append(float(loss.detach()))
                values.append(counts[0])
    moved = flattened(parameters) - before
    said = [str(each.message) for each in caught if "ddpify" in str(each.message)]
    return Trained(moved, losses, min(values), said + [note for note in report._notes.values() if "whole" in note])


def flattened(parameters: list[nn.Parameter]) -> Tensor:
    return torch.cat([parameter.detach().double().flatten() for parameter in parameters])


def in_float64(batch: Any) -> Any:
    if hasattr(batch, "to_data_list"):
        return batch.apply(lambda value: value.double() if value.is_floating_point() else value)
    return tree_map_only(Tensor, lambda value: value.double() if value.is_floating_point() else value, batch)


def measure(entry: Entry) -> Measured:
    """In one process and in as many as the entry asks for."""
    difference, share, said = 0.0, 0.0, []
    torch.set_num_threads(1)
    entry.build(0.0)  # imports what it needs, once
    for dropout, random in [(0.0, "")] + ([(DROPOUT, "original")] if entry.dropout else []):
        (alone,) = run(1, train, entry, dropout, random)
        ranks = run(entry.ranks, train, entry, dropout, random)
        for rank in ranks:
            difference = max(difference, relative(rank.moved, alone.moved))
        said += [text for text in ranks[0].said if text not in said]
        if not dropout:
            share = max(rank.values for rank in ranks) / alone.values
    if entry.dropout:
        ranks = run(entry.ranks, train, entry, DROPOUT, "")
        share = max(rank.values for rank in ranks) / alone.values
        said = ranks[0].said
    return Measured(difference, share, said)


def relative(found: Tensor, expected: Tensor) -> float:
    assert expected.isfinite().all(), "one process trains numbers that are not finite"
    return float((found - expected).norm() / expected.norm()) if found.isfinite().all() else math.inf
