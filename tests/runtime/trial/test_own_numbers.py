"""Numbers that change from call to call, and whether a forward decides by them (M4)."""

from __future__ import annotations

import copy

import pytest
import torch
from ddpify_runtime.trial import own_numbers
from ddpify_runtime.trial.reads import ReadsSamples
from torch import Tensor, nn


class Counts(nn.Module):
    steps: Tensor

    def __init__(self) -> None:
        super().__init__()
        self.calls, self.name = 0, "net"
        self.register_buffer("steps", torch.zeros(()))

    def forward(self, x: Tensor) -> Tensor:
        self.calls += 1
        self.steps += 1
        return x


def test_numbers_that_a_forward_changes_are_found() -> None:
    before, after, twin = Counts(), Counts(), Counts()
    after(torch.ones(2))
    places = own_numbers.changed(before, after, twin)
    assert sorted(name for _, name in places) == ["calls", "steps"]
    assert own_numbers.tensors(places) == [twin.steps]
    assert own_numbers.changed(before, copy.deepcopy(before), twin) == []


class Holder:
    """What a model keeps its state in."""

    def __init__(self) -> None:
        self.steps = 0


class Holds(nn.Module):
    def __init__(self) -> None:
        super().__init__()
        self.state: dict[str, object] = {"steps": 0, "inner": {"calls": 0}, "kept": 3}
        self.counts, self.holder, self.samples = [0, 5], Holder(), [0.0] * 200

    def forward(self, x: Tensor) -> Tensor:
        self.state["steps"] += 1  # type: ignore[operator]
        self.state["inner"]["calls"] += 1  # type: ignore[index]
        self.counts[0] += 1
        self.holder.steps += 1
        self.samples[0] += 1
        return x


def test_numbers_in_what_a_module_holds() -> None:
    before, after, twin = Holds(), Holds(), Holds()
    after(torch.ones(2))
    places = own_numbers.changed(before, after, twin)
    found = [(id(of), key) for of, key in places]
    inner = twin.state["inner"]
    expected = [(twin.state, "steps"), (inner, "calls"), (twin.counts, 0), (vars(twin.holder), "steps")]
    assert found == [(id(of), key) for of, key in expected]
    with own_numbers.watched(places):
        assert type(twin.counts[0]) is not int and type(twin.holder.steps) is not int
        with pytest.raises(ReadsSamples):
            bool(twin.counts[0] > 2)
    assert type(twin.counts[0]) is type(twin.holder.steps) is type(twin.state["steps"]) is int


def test_a_watched_number_may_be_computed_with_but_not_compared() -> None:
    number = own_numbers.watched_number(3)
    assert type(number + 1) is type(number) and own_numbers.watched_number("text") == "text"
    with pytest.raises(ReadsSamples):
        bool(number > 2)
    with pytest.raises(ReadsSamples):
        bool(2 * number)


def test_numbers_are_plain_again_afterwards() -> None:
    module = Counts()
    with own_numbers.watched([(vars(module), "calls")]):
        assert type(module.calls) is not int
    assert type(module.calls) is int and module.calls == 0
