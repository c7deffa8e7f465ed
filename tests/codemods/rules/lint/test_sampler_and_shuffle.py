"""Loaders that are given a sampler and shuffle (DDP503)."""

from __future__ import annotations

import pytest
from ddpify_codemods.rules.lint.sampler_and_shuffle import RULE

from .wrapped import told


@pytest.mark.parametrize(
    ("given", "is_told"),
    [
        ("sampler=DistributedSampler(data), shuffle=True", True),
        ("sampler=DistributedSampler(data), shuffle=False", False),
        ("sampler=DistributedSampler(data)", False),
        ("shuffle=True", False),
    ],
)
def test_which_loaders_torch_refuses(given: str, is_told: bool) -> None:
    line = f"other = DataLoader(data, 8, {given})"
    assert told(RULE, before=f"{line}\n") == ([line] if is_told else [])
