"""Statistics of batches that each rank has for itself (DDP517)."""

from __future__ import annotations

import pytest
from ddpify_codemods.rules.lint.batch_norm_statistics import RULE

from .wrapped import told

LAYERS = "norm = nn.BatchNorm1d(4)\nother = nn.BatchNorm2d(4)\n"


def test_the_first_layer_is_told() -> None:
    assert told(RULE, before=LAYERS) == ["norm = nn.BatchNorm1d(4)"]
    assert not told(RULE, before=LAYERS, is_wrapped=False)
    assert not told(RULE, before="norm = nn.LayerNorm(4)\n")


@pytest.mark.parametrize(
    ("line", "is_told"),
    [
        ("net = nn.SyncBatchNorm.convert_sync_batchnorm(net)", False),
        ("for buffer in net.buffers(): dist.broadcast(buffer, 0)", False),
        ("for buffer in net.buffers(): print(buffer)", True),
        ("for weight in net.parameters(): dist.broadcast(weight, 0)", True),
    ],
)
def test_a_script_that_knows_of_it(line: str, is_told: bool) -> None:
    assert bool(told(RULE, before=f"{LAYERS}{line}\n")) is is_told
