"""Evaluations that count some samples twice (DDP504)."""

from __future__ import annotations

import pytest
from ddpify_codemods.rules.lint.padded_evaluation import RULE

from tests.codemods.checks import findings_of

SCRIPT = """\
import torch
from torch import nn
from torch.nn.parallel import DistributedDataParallel as DDP
from torch.utils.data import DataLoader, DistributedSampler
sampler = {sampler}
loader = DataLoader(data, 8, sampler=sampler)
model = DDP(nn.Linear(4, 1))
hits = 0
model.eval()
with torch.no_grad():
    for x, y in {over}:
        hits += (model(x).argmax(1) == y).sum().item()
"""


@pytest.mark.parametrize(
    ("sampler", "over", "is_told"),
    [
        ("DistributedSampler(data, shuffle=False)", "loader", True),
        ("DistributedSampler(data, drop_last=False)", "loader", False),
        ("own(data)", "loader", False),
        ("DistributedSampler(data, shuffle=False)", "others", False),
    ],
)
def test_which_sampler_pads(sampler: str, over: str, is_told: bool) -> None:
    found = findings_of(RULE, SCRIPT.format(sampler=sampler, over=over))
    assert [finding.line for finding in found] == ([5] if is_told else [])
