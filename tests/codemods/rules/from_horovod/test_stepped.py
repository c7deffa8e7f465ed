"""The averaging that Horovod's optimizer waits for (DDP643)."""

from __future__ import annotations

import pytest
from ddpify_codemods.rules.from_horovod.stepped import RULE

from tests.codemods.checks import findings_of, rewritten

HEAD = "import torch\nimport horovod.torch as hvd\noptimizer = hvd.DistributedOptimizer(optimizer{})\nloss.backward()\n"


def test_nothing_waits_any_more() -> None:
    waits = "optimizer.synchronize()\nwith optimizer.skip_synchronize():\n    optimizer.step()\n"
    assert rewritten(RULE, HEAD.format("") + waits, "cuda") == HEAD.format("") + "optimizer.step()\n"


def test_a_block_of_several_lines_stays_one() -> None:
    waits = "with optimizer.skip_synchronize():\n    if x:\n        optimizer.step()\n"
    code = rewritten(RULE, HEAD.format("") + waits, "cuda")
    assert code.endswith(waits.replace("optimizer.skip_synchronize", "contextlib.nullcontext"))


@pytest.mark.parametrize(
    ("given", "line", "told"),
    [
        ("", "x = optimizer.synchronize()", [("refused", 5)]),
        ("", "torch.nn.utils.clip_grad_norm_(p, 1)", [("warning", 5)]),
        ("", "scaler.unscale_(optimizer)", [("warning", 5)]),
        ("", "optimizer.step()", []),
        (", backward_passes_per_step=2", "optimizer.step()", [("note", 4)]),
        ("", "other.synchronize()", []),
    ],
)
def test_what_was_otherwise_is_told(given: str, line: str, told: list[tuple[str, int]]) -> None:
    found = findings_of(RULE, HEAD.format(given) + line, "cuda")
    assert [(each.severity, each.line) for each in found] == told
