"""What Horovod brings together from all ranks (DDP645)."""

from __future__ import annotations

import pytest
from ddpify_codemods.rules.from_horovod.reduced import RULE

from tests.codemods.checks import findings_of, rewritten

HEAD = "import torch\nimport horovod.torch as hvd\n"


@pytest.mark.parametrize(
    ("value", "after"),
    [
        ("hvd.allreduce(y)", "average_with_gradients(y)"),
        ("hvd.allreduce(y, op=hvd.Sum)", "dist_nn.all_reduce(y)"),
        ("hvd.allreduce(y.detach())", "average_over_ranks(y.detach())"),
    ],
)
def test_what_is_brought_together(value: str, after: str) -> None:
    assert rewritten(RULE, f"{HEAD}x = {value}\n", "cuda").endswith(f"\nx = {after}\n")


@pytest.mark.parametrize("value", ["hvd.allreduce(y, op=hvd.Adasum)", "hvd.allgather(y)"])
def test_what_torch_has_no_form_for(value: str) -> None:
    assert [(each.severity, each.line) for each in findings_of(RULE, f"{HEAD}x = {value}", "cuda")] == [("refused", 3)]
