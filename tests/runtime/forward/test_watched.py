"""Hooks that a library sets on rank 0's module alone: a watched module runs whole, on every rank."""

from __future__ import annotations

from ddpify_runtime.forward.watched import follow, modules, states
from torch import nn


def test_a_module_is_watched_where_it_is_so_on_rank_0() -> None:
    module = nn.Linear(2, 2)
    assert modules((module, 3), {"model": module}) == [module, module]
    assert states([module]) == [False]
    follow([module], [True])
    assert states([module]) == [True]
    follow([module], [False])
    assert states([module]) == [False]


def test_hooks_of_the_scripts_own_stay() -> None:
    module = nn.Linear(2, 2)
    module.register_forward_hook(lambda *given: None)
    follow([module], [False])
    assert states([module]) == [True]
