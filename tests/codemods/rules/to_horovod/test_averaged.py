"""Horovod's optimizer takes the place of the wrapper (DDP652)."""

from __future__ import annotations

import pytest
from ddpify_codemods.rules.to_horovod.averaged import RULE

from tests.codemods.checks import findings_of, rewritten

HEAD = """\
import torch
from torch.nn.parallel import DistributedDataParallel as DDP
model = DDP(net)
optimizer = torch.optim.SGD(model.parameters(), lr=1)
"""
STEP = "loss.backward()\noptimizer.step()\n"


def test_the_optimizer_averages() -> None:
    code = rewritten(RULE, HEAD + STEP, "horovod")
    assert "\nmodel = net\nhvd.broadcast_parameters(model.state_dict(), root_rank=0)\n" in code
    assert code.endswith(
        f"optimizer = hvd.DistributedOptimizer(optimizer, named_parameters=model.named_parameters())\n{STEP}"
    )


@pytest.mark.parametrize(
    ("more", "is_refused"),
    [("", False), ("other = DDP(head)\n", True), ("other = torch.optim.SGD(head.parameters(), lr=1)\n", True)],
)
def test_one_model_and_one_optimizer(more: str, is_refused: bool) -> None:
    found = findings_of(RULE, HEAD + more + STEP, "horovod")
    assert any(each.severity == "refused" for each in found) is is_refused
