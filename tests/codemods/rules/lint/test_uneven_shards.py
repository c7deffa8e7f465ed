"""Parts of the data that may be longer on some ranks (DDP521)."""

from __future__ import annotations

import pytest
from ddpify_codemods.rules.lint.uneven_shards import RULE

from tests.codemods.checks import findings_of

SCRIPT = """\
import torch
import torch.distributed as dist
from torch import nn
from torch.nn.parallel import DistributedDataParallel as DDP
rank, world_size = dist.get_rank(), dist.get_world_size()
items = {items}
model = DDP(nn.Linear(4, 1))
for x in {over}:
    model(x).mean().backward()
"""


@pytest.mark.parametrize(
    ("items", "over", "is_told"),
    [
        ("found[rank::world_size]", "items", True),
        ("found[dist.get_rank()::2]", "items", True),
        ("found[rank:8:world_size]", "items", False),
        ("found[rank:]", "items", False),
        ("found[1::2]", "items", False),
        ("found[rank::world_size]", "DataLoader(items, 8, drop_last=True)", False),
    ],
)
def test_which_parts_may_be_uneven(items: str, over: str, is_told: bool) -> None:
    found = findings_of(RULE, SCRIPT.format(items=items, over=over))
    assert [finding.line for finding in found] == ([6] if is_told else [])


def test_gradients_are_no_samples() -> None:
    function = "class Batch(torch.autograd.Function):\n    def backward(_, g):\n        return g[{}]\n"
    script = SCRIPT.format(items="[]", over="items")
    assert not findings_of(RULE, script + function.format("dist.get_rank() :: 2"))
    assert findings_of(RULE, script + function.format("dist.get_rank() :: 2").replace("torch.autograd.Function", ""))
