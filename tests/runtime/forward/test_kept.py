"""Whether modules are what they were when somebody looked at them."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import pytest
import torch
from ddpify_runtime.forward.kept import Kept
from torch import nn


class Doubled(nn.Linear):
    """Of another class, with the same parameters."""


def made() -> Any:
    """A module with parts of parts, an empty one, and a hook."""
    module: Any = nn.Sequential(nn.Linear(2, 2), nn.Sequential(nn.Linear(2, 2), nn.ReLU()), nn.Sequential())
    module[1].handle = module[1].register_forward_hook(lambda *_: None)
    module[0].forward = module[0].forward
    module[0].bias = nn.Parameter(torch.ones(1))
    return module


def copied(layer: nn.Module) -> dict[str, nn.Parameter]:
    """Its parameters, of which the bias is another one."""
    return {**dict(layer.named_parameters()), "bias": nn.Parameter(torch.ones(1))}


CHANGES: dict[str, Callable[[Any], Any]] = {
    "mode of all": lambda module: module.eval(),
    "mode of one": lambda module: module[1][0].eval(),
    "a forward": lambda module: setattr(module[1][0], "forward", lambda input: input),
    "another forward": lambda module: setattr(module[0], "forward", lambda input: input),
    "the class's forward again": lambda module: delattr(module[0], "forward"),
    "class": lambda module: setattr(module[0], "__class__", Doubled),
    "a hook": lambda module: module[1].register_forward_hook(lambda *_: None),
    "a hook before": lambda module: module[1].register_full_backward_pre_hook(lambda *_: None),
    "a hook less": lambda module: module[1].handle.remove(),
    "a hook on a gradient": lambda module: module[0].weight.register_hook(lambda _: None),
    "a hook after a gradient": lambda module: module[0].weight.register_post_accumulate_grad_hook(lambda _: None),
    "a part elsewhere": lambda module: module[2].append(module[1].pop(1)),
    "no parts": lambda module: vars(module[1]).update(_modules={}),
    "other parts": lambda module: vars(module[1]).update(_modules={"0": nn.ReLU(), "1": module[1][1]}),
    "a parameter": lambda module: setattr(module[0], "weight", nn.Parameter(torch.ones(2, 2))),
    "a number of the same value": lambda module: setattr(module[0], "bias", nn.Parameter(torch.ones(1))),
    "frozen": lambda module: module[1][0].bias.requires_grad_(False),
    "all hooks by hand": lambda module: setattr(module[1], "_forward_hooks", {}),
    "a number of the same value in another dict": lambda module: vars(module[0]).update(_parameters=copied(module[0])),
    "type": lambda module: module.double(),
    "type of one": lambda module: module[1][0].double(),
}


@pytest.mark.parametrize("name", CHANGES)
def test_a_change_is_seen(name: str) -> None:
    module = made()
    kept = Kept([*module.modules()], [*module.parameters()])
    assert kept.is_same() and kept.is_same()
    CHANGES[name](module)
    assert not kept.is_same()


def test_the_hooks_of_others_are_none_of_theirs() -> None:
    module = made()
    kept = Kept([*module.modules()], [*module.parameters()])
    nn.ReLU().register_forward_hook(lambda *_: None)
    torch.ones(1, requires_grad=True).register_hook(lambda _: None)
    assert kept.is_same() and kept.is_same()


def test_one_of_many_that_was_moved_is_seen_when_it_is_its_turn() -> None:
    module = made()
    kept = Kept([*module.modules()], [*module.parameters()])
    kept._devices[-1] = torch.device("meta")
    assert not all(kept.is_same() for _ in module.parameters())


@pytest.mark.filterwarnings("ignore")
def test_a_scripted_module_keeps_its_parts_elsewhere() -> None:
    with pytest.raises((KeyError, TypeError)):
        Kept([torch.jit.script(nn.Linear(2, 2))], [])
