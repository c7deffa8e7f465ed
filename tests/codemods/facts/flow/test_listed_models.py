"""Models that training takes one after the other from a list."""

from __future__ import annotations

import pytest

from tests.codemods.plain.test_followed import plain, refusals

SCRIPT = """\
import torch
import torch.nn as nn
import torch.nn.functional as F
from torch.utils.data import DataLoader, TensorDataset

train_set = TensorDataset(torch.rand(64, 4), torch.randint(3, (64,)))
loader = DataLoader(train_set, batch_size=8, shuffle=True)
first, second = nn.Linear(4, 3), nn.Linear(4, 3)
nets = [first, second]
optimizers = [torch.optim.SGD(net.parameters(), lr=0.1) for net in nets]
for x, y in loader:
    for i, (net, optimizer) in enumerate(zip(nets, optimizers)):
        net.train()
        loss = F.cross_entropy(net(x), y)
        optimizer.zero_grad()
        loss.backward()
        optimizer.step()
        torch.save(net.state_dict(), "%d.pt" % i)
"""
THIRD = """\
nets = [first, second, nn.Linear(4, 3)]
optimizers = [torch.optim.SGD(net.parameters(), lr=0.1) for net in (first, second)]
"""


def test_their_wrappers_are_a_list() -> None:
    result = plain(SCRIPT)
    assert not refusals(result)
    lines = ["nets = [first, second]", "ddp_nets = [DistributedDataParallel(each) for each in nets]", "optimizers ="]
    assert "\n".join(lines) in result.code
    assert "in enumerate(zip(ddp_nets, optimizers)):" in result.code
    assert "net.train()\n" in result.code and "torch.save(net.module.state_dict()" in result.code


def test_a_comprehension_makes_them() -> None:
    result = plain(SCRIPT.replace("[first, second]", "[nn.Linear(4, 3) for _ in range(3)]"))
    assert not refusals(result) and "in enumerate(zip(ddp_nets, optimizers)):" in result.code


@pytest.mark.parametrize(
    ("before", "after"),
    [
        ("[first, second]", "[first, first]"),
        ("optimizers = [torch.optim.SGD(net.parameters(), lr=0.1) for net in nets]", THIRD),
        ("[first, second]", "[first, second][:1]"),
        ("for x, y in loader:", "nets.append(nn.Linear(4, 3))\nfor x, y in loader:"),
        ("for x, y in loader:", "nets[0] = nn.Linear(4, 3)\nfor x, y in loader:"),
        ("for x, y in loader:", "others = nets\nfor x, y in loader:"),
        ("zip(nets, optimizers)", "zip(nets[:1], optimizers)"),
        ("zip(nets, optimizers)", "zip(reversed(nets), optimizers)"),
        ("        net.train()\n", "        net = first\n"),
    ],
)
def test_lists_of_which_not_all_is_known(before: str, after: str) -> None:
    assert refusals(plain(SCRIPT.replace(before, after)))


def test_their_variable_is_used_behind_the_loop() -> None:
    assert refusals(plain(SCRIPT + "print(net.weight)\n"))
