"""States go out as data and come back in place."""

from __future__ import annotations

import io
import random
from collections import defaultdict, deque
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
import torch
from ddpify_runtime.resume.states import CannotCarry, generators, in_place, put_back, taken
from torch import Tensor, nn
from torch.utils.data import DataLoader, Sampler, TensorDataset


class Average:
    def __init__(self) -> None:
        self.total = 0.0
        self.values: Any = [1, 2]


def through_a_file(state: Any) -> Any:
    file = io.BytesIO()
    torch.save(state, file)
    file.seek(0)
    return torch.load(file, weights_only=False)


@pytest.mark.parametrize(
    ("before", "after"),
    [
        ([1, [2.0, "a"]], []),
        ({"a": [1], "b": {2, 3}}, {"a": [0, 0], "c": 1}),
        (deque([1, 2], maxlen=5), deque([0])),
        ((1, 2.5, None), (0, 0.0, 1)),
        (defaultdict(list, {"x": [1]}), defaultdict(list)),
        (3, 0),
        ({1, 2}, {5}),
    ],
)
def test_plain_values(before: Any, after: Any) -> None:
    back = put_back(after, through_a_file(taken(before, "x")))
    assert back == before and type(back) is type(before)
    assert back is after or isinstance(after, (int, tuple))


def test_what_was_none_at_the_start() -> None:
    assert put_back(None, taken({"w": [1]}, "best")) == {"w": [1]}


def test_an_object_keeps_its_identity() -> None:
    one, other = Average(), Average()
    one.total, values = 3.5, other.values
    one.values.append(7)
    assert put_back(other, through_a_file(taken(one, "average", set()))) is other
    assert (other.total, other.values) == (3.5, [1, 2, 7]) and other.values is values


class Layer(nn.Module):
    def __init__(self) -> None:
        super().__init__()
        self.linear, self.norm = nn.Linear(2, 2), nn.BatchNorm1d(2)
        self.mask: torch.Tensor
        self.register_buffer("mask", torch.zeros(2), persistent=False)
        self.calls = 0

    def forward(self, x: torch.Tensor) -> Any:
        return self.norm(self.linear(x))


def test_a_module_with_all_that_it_holds() -> None:
    one, other = Layer(), Layer()
    one.mask += 1
    one.calls, one.norm.momentum = 3, 0.7
    one.linear.bias.requires_grad_(False)
    one(torch.rand(4, 2)).sum().backward()
    weight = other.linear.weight
    in_place(other, through_a_file(taken(one, "model", set())))
    assert other.linear.weight is weight and torch.equal(weight, one.linear.weight)
    assert weight.grad is not None and one.linear.weight.grad is not None
    assert torch.equal(weight.grad, one.linear.weight.grad)
    assert not other.linear.bias.requires_grad and other.linear.bias.grad is None
    assert other.norm.running_mean is not None and one.norm.running_mean is not None
    assert torch.equal(other.norm.running_mean, one.norm.running_mean)
    assert torch.equal(other.mask, torch.ones(2))
    assert other.calls == 3
    assert other.norm.momentum == 0.7


def test_generators_are_found_and_put_back() -> None:
    holder = Average()
    holder.values = [random.Random(1), {"g": torch.Generator().manual_seed(2)}]
    found = list(generators(holder))
    states = [taken(each, "") for each in found]
    drawn = found[0].random(), torch.rand(2, generator=found[1])
    for each, state in zip(found, states, strict=True):
        put_back(each, through_a_file(state))
    assert found[0].random() == drawn[0] and torch.equal(torch.rand(2, generator=found[1]), drawn[1])


def test_a_tensor_keeps_its_memory_where_it_has_a_name_of_its_own() -> None:
    table, row = torch.zeros(3), torch.zeros(3)
    view = table[:1]
    in_place(table, taken(row + 2, "table"))
    assert view.item() == 2


def test_a_graph_is_left_out_of_a_variable_and_refused_in_an_object() -> None:
    loss = torch.ones(2, requires_grad=True) * 2
    assert not put_back(0, taken((loss, loss), "hidden"))[0].requires_grad
    with pytest.raises(CannotCarry, match=r"`losses\[0\]` is a tensor with the graph"):
        taken([loss], "losses")


def test_what_is_not_known_is_refused(tmp_path: Path) -> None:
    with pytest.raises(CannotCarry, match=r"`x.values` is a builtins.list_iterator"):
        average = Average()
        average.values = iter([])
        taken(average, "x")
    with (tmp_path / "log").open("w") as file, pytest.raises(CannotCarry, match="open it with mode 'a'"):
        taken([file], "logs")
    with (tmp_path / "log").open("a") as file:
        taken([file], "logs")


class Passes(Sampler[int]):
    """Draws by weights, another order in each pass."""

    def __init__(self, weights: Tensor) -> None:
        self.rows, self.weights, self.epoch = TensorDataset(weights), weights, 0

    def __iter__(self) -> Iterator[int]:
        order = torch.Generator().manual_seed(self.epoch)
        self.epoch += 1
        return iter(torch.multinomial(self.weights, 8, generator=order).tolist())

    def __len__(self) -> int:
        return 8


def test_a_sampler_that_counts_its_passes() -> None:
    weights = torch.ones(8)
    sampler = Passes(weights)
    [state] = [taken(each, "sampler") for each in generators([DataLoader(sampler.rows, sampler=sampler)])]
    first = [*sampler]
    weights[:4] = 9  # which the state must not share
    assert [*sampler] != first and sampler.epoch == 2
    for _ in range(2):  # nor may what is given back
        put_back(sampler, state)
        assert sampler.weights is weights and weights.eq(1).all()
        assert [*sampler] == first
        weights[:4] = 9
    assert not [*generators([DataLoader(sampler.rows, shuffle=True)])]
