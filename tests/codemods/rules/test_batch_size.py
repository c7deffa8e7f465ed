"""The batch size of a training loader becomes that of each process where its call says it."""

from __future__ import annotations

from pathlib import Path

import pytest
from ddpify_codemods import RULES, convert

PATH = Path("train.py")
BEFORE = next(rule for rule in RULES if rule.id == "DDP124").before
LOADER = "DataLoader(data, batch_size=8, shuffle=True)"


@pytest.mark.parametrize(
    ("loader", "after"),
    [
        ("DataLoader(data, batch_size=8, shuffle=True, **more)", "batch_size=8 * get_world_size()"),
        ("DataLoader(data, 8, True, **more)", "data, 8 * get_world_size()"),
        ("DataLoader(data, shuffle=True, **more)", ""),
        ("DataLoader(*(data, 8), shuffle=True)", ""),
    ],
)
def test_other_arguments_may_come_from_elsewhere(loader: str, after: str) -> None:
    before = BEFORE.replace("loader =", "more = {'num_workers': 0}\nloader =", 1).replace(LOADER, loader, 1)
    result = convert({PATH: before}, "cpu", per_process=True)[PATH]
    assert after in result.code
    assert (result.code == before) == (not after)
