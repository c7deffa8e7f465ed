"""The numbers outside of a module that the code of its forward names (M4, M7)."""

from __future__ import annotations

from ddpify_runtime.forward.outside_numbers import places
from torch import Tensor, nn

MIX, UNUSED = 0.5, 3.0
SETTINGS = {"epoch": 1, "other": 2}


class Options:
    threshold = 4


def helper(x: Tensor) -> Tensor:
    return x * MIX


class Net(nn.Module):
    def __init__(self) -> None:
        super().__init__()
        self.options = Options()

    def forward(self, x: Tensor) -> Tensor:
        if SETTINGS["epoch"] > 5 or self.options.threshold > 9:
            return x
        return helper(x)


def test_globals_entries_and_attributes_that_the_forward_names() -> None:
    named = {name for _, name in places([Net()])}
    assert {"MIX", "epoch", "threshold"} <= named
    assert not {"UNUSED", "other"} & named
