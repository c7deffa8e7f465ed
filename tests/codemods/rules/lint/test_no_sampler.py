"""Training data that nobody divides (DDP502)."""

from __future__ import annotations

import pytest
from ddpify_codemods.rules.lint.no_sampler import RULE

from tests.codemods.checks import findings_of

SCRIPT = """\
import torch
import torch.distributed as dist
from torch import nn
from torch.nn.parallel import DistributedDataParallel as DDP
from torch.utils.data import DataLoader, DistributedSampler
{before}
loader = DataLoader(data, 8, {given})
model = DDP(nn.Linear(4, 1))
for x, y in loader:
    {trains}
"""
TRAINS = "model(x).mean().backward()"


@pytest.mark.parametrize(
    ("before", "given", "is_told"),
    [
        ("", "shuffle=True", True),
        ("", "shuffle=False", False),
        ("", "shuffle=True, batch_sampler=own", False),
        ("other = DistributedSampler(data)", "shuffle=True", False),
        ("data = split_dataset_by_node(data, 0, 2)", "shuffle=True", False),
        ("data = files[dist.get_rank()]", "shuffle=True", False),
    ],
)
def test_a_loader_that_shuffles_everything(before: str, given: str, is_told: bool) -> None:
    found = findings_of(RULE, SCRIPT.format(before=before, given=given, trains=TRAINS))
    assert [finding.line for finding in found] == ([7] if is_told else [])


def test_a_loader_of_an_evaluation() -> None:
    assert not findings_of(RULE, SCRIPT.format(before="", given="shuffle=True", trains="print(model(x))"))
