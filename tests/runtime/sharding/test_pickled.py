"""What comes from another rank is on this rank's own device. The devices are made up: memory of the host."""

from __future__ import annotations

import pickle
from typing import Any

import pytest
import torch
import torch.distributed as dist
from ddpify_runtime.remote import values
from ddpify_runtime.sharding.collectives import broadcast_object, gather_objects, gather_objects_on
from ddpify_runtime.sharding.pickled import loads
from torch import nn

from tests.runtime.processes import run


def received() -> tuple[list[bool], set[str]]:
    """Where the tensors arrive that every rank sends from what is its GPU."""
    rank, arrived = dist.get_rank(), []

    def loaded(storage: Any, location: str) -> Any:
        if location.startswith("cuda"):
            arrived.append(location)
            return storage
        return None

    torch.cuda.current_device = lambda: rank
    on_gpu = nn.Linear(3, 2)
    addresses = {each.untyped_storage().data_ptr() for each in on_gpu.parameters()}
    mine = [{"model": on_gpu, "weight": on_gpu.weight.data}, torch.ones(2), torch.device("cuda", rank), ("text", 3)]
    tag = lambda storage: f"cuda:{rank}" if storage.data_ptr() in addresses else None  # noqa: E731
    torch.serialization.register_package(0, tag, loaded)
    ways: list[Any] = [
        broadcast_object(mine),
        gather_objects(mine)[1 - rank],
        (gather_objects_on(0, mine) or [None])[-1],
        values.from_rank_zero(values.next_key("value"), rank == 0, lambda: (None, mine)),
    ]
    for got in ways:
        if got is not None:
            assert torch.equal(got[0]["model"].weight, got[0]["weight"]) and torch.equal(got[1], torch.ones(2))
            assert got[2:] == [torch.device("cuda", rank), ("text", 3)]
    return [got is not None for got in ways], {*arrived}


def test_tensors_come_to_the_device_of_their_rank() -> None:
    assert run(2, received) == [([True, True, True, False], {"cuda:0"}), ([True, True, False, True], {"cuda:1"})]


@pytest.mark.parametrize("value", [torch.device("cpu"), torch.device("cuda"), torch.ones(3).half(), torch.arange(4)])
def test_what_is_on_no_device_of_a_rank_is_as_it_was(value: Any) -> None:
    found = loads(pickle.dumps(value))
    assert torch.equal(found, value) if isinstance(value, torch.Tensor) else found == value
