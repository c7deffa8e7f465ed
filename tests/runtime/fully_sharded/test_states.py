"""The state of a sharded module is that of one process: whole, and as it was when it was taken."""

from __future__ import annotations

import copy
import warnings
from collections import OrderedDict
from typing import Any

import pytest
import torch
from ddpify_runtime import fully_shard, rank_zero_only
from ddpify_runtime.fully_sharded.states import Taken
from torch import Tensor, nn

from tests.runtime import processes


def net() -> nn.Sequential:
    return nn.Sequential(nn.Linear(16, 5), nn.BatchNorm1d(5), nn.Linear(5, 3))


def states() -> dict[str, Any]:
    torch.manual_seed(1)
    warnings.simplefilter("ignore")
    model = net()
    first = copy.deepcopy(model.state_dict())
    fully_shard(model)
    step = torch.optim.SGD(model.parameters(), lr=0.1)
    taken = model.state_dict()
    assert [*taken] == [*first] and all(torch.equal(taken[name], first[name]) for name in first)
    assert taken._metadata == first._metadata  # type: ignore[attr-defined]
    kept = copy.deepcopy(taken)
    assert type(kept) is type(first)
    model(torch.rand(6, 16)).square().sum().backward()
    step.step()
    with pytest.raises(RuntimeError, match="changed since"):
        taken["2.weight"]
    assert not torch.equal(model.state_dict()["2.weight"], first["2.weight"])
    model.load_state_dict(kept)
    assert all(torch.equal(each, first[name]) for name, each in model.state_dict().items())
    with pytest.raises(RuntimeError, match="Missing key"):
        model.load_state_dict({})
    with pytest.raises(RuntimeError, match="one calls it alone"):
        rank_zero_only(model.state_dict)()
    return dict(kept)


def test_states_are_whole() -> None:
    torch.manual_seed(1)
    first = net().state_dict()
    for found in processes.run(3, states):
        other = net()
        other.load_state_dict(found)
        assert all(torch.equal(each, first[name]) for name, each in other.state_dict().items())


def taken(parameter: Tensor) -> Taken:
    state = Taken({"weight": parameter.detach().clone()})
    state.parameters, state.versions = [parameter], [parameter._version]
    return state


def test_a_state_may_be_looked_at_until_the_next_step() -> None:
    parameter = torch.zeros(3)
    state = taken(parameter)
    assert state["weight"].tolist() == [0, 0, 0] and [*state.values()] and [*state.items()]
    parameter += 1
    for look in (lambda: state["weight"], state.items, state.values, lambda: copy.deepcopy(state)):
        with pytest.raises(RuntimeError, match="the model has changed since"):
            look()


def test_a_copy_is_what_one_process_has() -> None:
    parameter = torch.zeros(3)
    made = copy.deepcopy(taken(parameter))
    parameter += 1
    assert type(made) is OrderedDict and not vars(made)
    assert made["weight"].tolist() == [0, 0, 0]
