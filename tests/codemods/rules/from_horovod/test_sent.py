"""What Horovod sends from one rank (DDP644)."""

from __future__ import annotations

import pytest
from ddpify_codemods.rules.from_horovod.sent import RULE

from tests.codemods.checks import findings_of, rewritten

HEAD = "import torch\nimport horovod.torch as hvd\n"


@pytest.mark.parametrize(
    ("line", "after"),
    [
        (
            "hvd.broadcast_parameters(model.state_dict(), root_rank=0)",
            "for tensor in model.state_dict().values():\n    dist.broadcast(tensor, 0)\n",
        ),
        (
            "hvd.broadcast_parameters(model.state_dict(), 1)",
            "for tensor in model.state_dict().values():\n    dist.broadcast(tensor, 1)\n",
        ),
        ("hvd.broadcast_(x, 0)", "dist.broadcast(x, 0)\n"),
    ],
)
def test_what_is_sent(line: str, after: str) -> None:
    assert rewritten(RULE, f"{HEAD}{line}\n", "cuda").endswith(f"\n{after}")


@pytest.mark.parametrize("line", ["y = hvd.broadcast_(x, 0)", "hvd.broadcast_(x, 0, process_set=pair)"])
def test_what_is_refused(line: str) -> None:
    assert [(each.severity, each.line) for each in findings_of(RULE, HEAD + line, "cuda")] == [("refused", 3)]
