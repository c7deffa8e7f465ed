"""BatchNorm that gets one value per channel of each sample."""

from __future__ import annotations

import pytest
from ddpify_codemods.facts.pooled_norms import pooled_norms

from tests.codemods.checks import script_of


@pytest.mark.parametrize(
    ("layers", "found"),
    [
        ("nn.AdaptiveAvgPool2d(1), nn.Conv2d(3, 4, 1), nn.BatchNorm2d(4)", [True]),
        ("nn.AdaptiveMaxPool2d((1, 1)), BatchNorm(4), nn.ReLU()", [True]),
        ("nn.AdaptiveAvgPool3d(output_size=1), nn.BatchNorm3d(4)", [True]),
        ("nn.AdaptiveAvgPool2d(size), nn.BatchNorm2d(4)", [False]),
        ("nn.AdaptiveAvgPool2d((1, None)), nn.BatchNorm2d(4)", []),
        ("nn.AdaptiveAvgPool2d(2), nn.BatchNorm2d(4)", []),
        ("nn.BatchNorm2d(4), nn.AdaptiveAvgPool2d(1)", []),
        ("nn.Conv2d(3, 4, 1), nn.BatchNorm2d(4)", []),
    ],
)
def test_norms_behind_a_pooling(layers: str, found: list[bool]) -> None:
    script = script_of(f"from torch import nn\nlayers = nn.Sequential({layers})\n")
    assert [sure for _, sure in pooled_norms(script)] == found
