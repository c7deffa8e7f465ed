"""What would see a part of the batch, or a local gradient, in a divided forward; and what can be compiled."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import pytest
import torch
from ddpify_runtime.forward.division import Division, is_compilable, watched
from ddpify_runtime.sharding.collectives import Rows
from torch import nn


@pytest.mark.parametrize(
    ("hook", "reason"),
    [
        (lambda net: None, ""),
        (lambda net: net[0].register_forward_hook(lambda *given: None), "a hook on 0 sees its batches or gradients"),
        (lambda net: net.register_forward_pre_hook(lambda *given: None), "a hook on it sees its batches"),
        (lambda net: net[0].weight.register_hook(lambda gradient: None), "a hook on 0.weight sees its gradients"),
    ],
)
def test_hooks_see_a_part(hook: Callable[[Any], Any], reason: str) -> None:
    net = nn.Sequential(nn.Linear(2, 2))
    hook(net)
    assert watched(net) == reason


def test_samples_are_counted_where_they_lie() -> None:
    assert Division(batch=(1, 1)).samples([None, torch.zeros(3, 7)]) == 7


def test_what_needs_a_mode_or_sends_something_is_not_compiled() -> None:
    plain = Division(inputs=(Rows(0),))
    assert is_compilable(nn.Linear(2, 2), plain)
    assert not is_compilable(nn.Sequential(nn.BatchNorm1d(2)), plain)
    assert not is_compilable(nn.Linear(2, 2), Division(losses=(True,)))
    assert not is_compilable(nn.Linear(2, 2), Division(decides=True))
