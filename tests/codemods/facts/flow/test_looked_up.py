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


CODES = "torch.rand(5, 3)"
NEAREST = "torch.argmin(torch.cdist(model(x), codes), 1)"


@pytest.mark.parametrize(
    ("found", "divided"),
    [
        (f"torch.index_select(codes, 0, {NEAREST})", True),
        (f"codes[{NEAREST}]", True),
        ("torch.cdist(model(x).view(len(x), 3, 1), codes[None, :, :1].repeat((len(x), 1, 1)))", True),
        ("torch.cdist(model(x).view(len(x), 1, 3), codes)", True),
        (f"torch.index_select(codes, 1, {NEAREST})", False),
        ("torch.cdist(model(x)[y > 0], codes)", False),  # not as many on each rank
        ("torch.index_select(codes, 0, y[y > 0])", False),
        ("torch.cdist(model(x), torch.rand(2, 5, 3))", False),  # samples lie behind the codebooks
        ("torch.cdist(model(x), model(x))", False),
        ("torch.cdist(model(x)[:, None], model(x)[None])", False),
        ("torch.cdist(model(x).view(len(x), 3, 1), model(x)[:, :1])", False),
    ],
)
def test_the_nearest_of_a_codebook(found: str, divided: bool) -> None:
    loss = f"({found}).pow(2).mean() + model(x).mean()"
    source = training(loss).replace("model = nn", f"codes = {CODES}\nmodel = nn", 1)
    assert bool(undivided(plain(source))) is not divided
