"""Training loaders that Ignite itself divides: batch size and order stay those of the script."""

from __future__ import annotations

import pytest

from tests.codemods.plain.test_ignite import HEAD, LOADER, LOOP, code_of


@pytest.mark.parametrize(
    ("before", "per_process", "after"),
    [
        (LOADER, False, "idist.auto_dataloader(data, batch_size=8, shuffle=True)"),
        (LOADER, True, "idist.auto_dataloader(data, batch_size=8 * idist.get_world_size(), shuffle=True)"),
        ("loader = DataLoader(data, 8)", False, "idist.auto_dataloader(data, batch_size=8, shuffle=False)"),
        (
            "loader = DataLoader(data, 8, shuffle=True)",
            False,
            "idist.auto_dataloader(data, batch_size=8, shuffle=True)",
        ),
        ("loader = DataLoader(data, batch_size=8)", False, "idist.auto_dataloader(data, batch_size=8, shuffle=False)"),
    ],
)
def test_the_batch_size_and_the_order_stay_those_of_the_script(before: str, per_process: bool, after: str) -> None:
    assert f"loader = {after}" in code_of(HEAD.replace(LOADER, before) + LOOP, per_process)
