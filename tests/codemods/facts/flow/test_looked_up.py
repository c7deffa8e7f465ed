"""What samples look up in a table that all ranks have."""

from __future__ import annotations

import pytest

from tests.codemods.plain.test_followed import plain, training, undivided

TABLE = "torch.arange(5.0)"
STEPS = "y.long()"


@pytest.mark.parametrize(
    "found",
    [
        f"torch.gather({TABLE}, 0, {STEPS})",
        f"torch.gather({TABLE}, index={STEPS}, dim=0)",
        f"{TABLE}.gather(-1, {STEPS})",
        f"{TABLE}.gather(0, index={STEPS})",
    ],
)
def test_each_sample_looks_up_its_own(found: str) -> None:
    weighed = f"({found}.view([len(y)] + [1] * (x.dim() - 1)) * model(x)).mean()"
    assert not undivided(plain(training(weighed)))


@pytest.mark.parametrize(
    "found",
    [f"torch.gather({TABLE}.expand(8, 5), 1, {STEPS}[:, None])", f"torch.gather(model(x), 0, {STEPS}[:, None])"],
)
def test_a_place_by_the_number_of_a_sample_is_no_table(found: str) -> None:
    assert undivided(plain(training(f"({found} * model(x)).mean()")))
