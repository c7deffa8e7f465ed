"""Models are wrapped where Horovod wraps their optimizers (DDP642)."""

from __future__ import annotations

import pytest
from ddpify_codemods.rules.from_horovod.wrapped import RULE

from tests.codemods.checks import findings_of, rewritten

HEAD = """\
import torch
import horovod.torch as hvd
model = torch.nn.Linear(1, 1)
optimizer = torch.optim.SGD(model.parameters(), lr=1)
"""
WRAPS = "optimizer = hvd.DistributedOptimizer(optimizer, named_parameters=model.named_parameters(){})\n"


def test_the_model_of_the_parameters_is_wrapped() -> None:
    code = rewritten(RULE, HEAD + WRAPS.format("") + "model(x).backward()\nprint(model.weight)\n", "cuda")
    assert "ddp_model = DistributedDataParallel(model, broadcast_buffers=False)\nddp_model(x).backward()\n" in code
    assert code.endswith("print(model.weight)\n") and "hvd.D" not in code


@pytest.mark.parametrize("given", [", op=hvd.Adasum", ", **given"])
def test_what_averages_otherwise_is_refused(given: str) -> None:
    found = findings_of(RULE, HEAD + WRAPS.format(given) + "model(x).backward()\n", "cuda")
    assert [(each.severity, each.line) for each in found] == [("refused", 5)]
