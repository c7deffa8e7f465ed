"""Functions of libraries are known by their names: losses, `map`."""

from __future__ import annotations

import pytest

from tests.codemods.facts.flow.followed import TRAINING, reasons, undivided


@pytest.mark.parametrize(
    ("loss", "fine"),
    [
        ("F.cross_entropy(model(x), y)", True),
        ("F.mse_loss(model(x), x[:, :3])", True),
        ("torch.cdist(model(x), model(x)).mean()", False),
    ],
)
def test_losses_over_samples_and_over_pairs_of_them(loss: str, fine: bool) -> None:
    assert (undivided(TRAINING.replace("F.cross_entropy(model(x), y)", loss)) == []) is fine


@pytest.mark.parametrize(
    ("made", "fine"),
    [
        ("map(torch.autograd.Variable, (x, y))", True),
        ("map(lambda part: part.to('cpu'), (x, y))", True),
        ("map(lambda part: part.flip(0), [x, y])", False),
        ("map(torch.special.expit, (x, y))", False),
    ],
)
def test_what_map_makes_of_several_tensors(made: str, fine: bool) -> None:
    source = TRAINING.replace("        optimizer.zero", f"        x, y = {made}\n        optimizer.zero", 1)
    assert (reasons(source) == []) is fine
