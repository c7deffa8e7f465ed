"""Lists, dicts and sets that comprehensions make of batches, of samples and of numbers."""

from __future__ import annotations

import pytest

from tests.codemods.facts.flow.followed import TRAINING, undivided

CALL = "F.cross_entropy(model(x), y)"


@pytest.mark.parametrize(
    ("loss", "is_followed"),
    [
        ("sum([F.cross_entropy(each, y) for each in (model(x), model(x))])", True),
        ("{name: F.cross_entropy(model(x), y) for name in ['one', 'two']}['two']", True),
        ("torch.stack([F.cross_entropy(o[None], t[None]) for o, t in zip(model(x), y)]).mean()", True),
        ("torch.stack([(o - model(x)).square().mean() for o in model(x)]).mean()", False),
        ("torch.stack([o.max() for o, t in zip(model(x), y) if t > 0]).mean()", False),
    ],
)
def test_a_loss_that_a_comprehension_makes(loss: str, is_followed: bool) -> None:
    assert (undivided(TRAINING.replace(CALL, loss)) == []) is is_followed


def test_parts_of_a_batch_keep_their_places() -> None:
    parts = "        x, y = [each.to('cpu') for each in (x, y)]\n"
    assert (
        undivided(TRAINING.replace("        optimizer.zero_grad()\n", parts + "        optimizer.zero_grad()\n")) == []
    )
