"""A trial leaves the script's variables as they were."""

from __future__ import annotations

from collections import deque
from typing import Any, ClassVar

import torch
from ddpify_runtime.trial import script_variables
from torch import Tensor, nn

CALLS, SEEN, LATEST, BY_NAME, LAST = 0, [1], deque([1], 2), {"calls": 0}, torch.ones(1)


class Net(nn.Module):
    made = 0
    names: ClassVar[set[str]] = {"net"}

    def forward(self, x: Tensor) -> Tensor:
        global CALLS, LAST
        CALLS, LAST = CALLS + 1, x
        SEEN.append(len(x))
        LATEST.append(len(x))
        BY_NAME["calls"] += 1
        BY_NAME["new"] = 1
        Net.made += 1
        self.names.add("called")
        return x


def test_variables_are_put_back() -> None:
    net = nn.Sequential(Net())
    lists: Any = SEEN, LATEST, BY_NAME, LAST
    with script_variables.kept(net):
        net(torch.zeros(2))
        assert (CALLS, Net.made, len(SEEN)) == (1, 1, 2)
    assert (CALLS, SEEN, [*LATEST], BY_NAME, Net.made, Net.names) == (0, [1], [1], {"calls": 0}, 0, {"net"})
    assert lists[0] is SEEN
    assert lists[3] is LAST
