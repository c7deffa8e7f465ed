"""What all ranks have to call, where one gets to (DDP505)."""

from __future__ import annotations

import pytest
from ddpify_codemods.rules.lint.rank_zero_collective import RULE

from .wrapped import told

ONE = "if dist.get_rank() == 0:\n    {}\n"


@pytest.mark.parametrize(
    ("after", "lines"),
    [
        (ONE.format("dist.barrier()"), ["dist.barrier()"]),
        (ONE.format("dist.barrier()") + "else:\n    dist.barrier()\n", []),
        (ONE.format("dist.barrier(group=pair)"), []),
        ("if epoch == 0:\n    dist.barrier()\n", []),
        (ONE.format("print(1)") + "dist.barrier()\n", []),
    ],
)
def test_who_gets_to_a_collective(after: str, lines: list[str]) -> None:
    assert told(RULE, after) == lines


def test_a_forward_sends_the_buffers_of_batch_norms() -> None:
    after = ONE.format("print(model(x))")
    assert told(RULE, after, before="net = nn.BatchNorm1d(4)\n") == ["print(model(x))"]
    assert not told(RULE, after)
    assert not told(RULE, after.replace("model(x)", "model.module(x)"), before="net = nn.BatchNorm1d(4)\n")
