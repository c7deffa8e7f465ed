"""DDP215: loops over batches that take no step."""

from __future__ import annotations

import pytest

from .eager import check_noop, check_transformed

_LOADER = """\
from torch.utils.data import DataLoader
loader = DataLoader([1], 1)


def step(model, x):
    model(x).sum().backward()


def evaluated(model, x):
    return model(x).sum()
"""
_SYNC = "    torch_xla.sync()\n"


@pytest.mark.parametrize(
    "lines",
    [
        "for x in loader:\n    print(x)",  # nothing on the device
        "for i in range(3):\n    total = net(i)",  # no batches
        "for x in loader:\n    step(model, x.float())",  # trains
    ],
)
def test_nothing_to_do(lines: str) -> None:
    check_noop(lines, _LOADER)


@pytest.mark.parametrize(
    ("before", "after"),
    [
        (
            "for x in loader:\n    total = net(x.to(rank))\n",
            "for x in loader:\n    total = net(x.to(torch_xla.device()))\n{}",
        ),
        (
            "for i, x in enumerate(loader):\n    total = evaluated(net, x.float())\n",
            "for i, x in enumerate(loader):\n    total = evaluated(net, x.float())\n{}",
        ),
        (
            "for x, y in given:\n    if skips:\n        continue\n    total = other(x.cuda())\n",
            "for x, y in given:\n{}    if skips:\n        continue\n    total = other(x.to(torch_xla.device()))\n",
        ),
        (
            "for x, y in given:\n    total = other(x.cuda())\n    break\n",
            "for x, y in given:\n{}    total = other(x.to(torch_xla.device()))\n    break\n",
        ),
        (  # the parts of one batch
            "for k, v in batch.items():\n    batch[k] = v.to(rank)\n",
            "for k, v in batch.items():\n    batch[k] = v.to(torch_xla.device())\n",
        ),
        (  # its loader does it
            "for x in loader:\n    total = net(x)\n",
            "for x in pl.MpDeviceLoader(loader, torch_xla.device()):\n    total = net(x)\n",
        ),
    ],
)
def test_what_changes(before: str, after: str) -> None:
    check_transformed(before, after.format(_SYNC), _LOADER)
