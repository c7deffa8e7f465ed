"""Functions of libraries are known by their names: losses, `map`."""

from __future__ import annotations

import ast

import pytest

from tests.codemods.facts.flow.followed import TRAINING, followed, reasons, undivided


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


TO = "def to_device(part):\n    return part.to('cpu')\n"


@pytest.mark.parametrize(
    ("takes", "fine"),
    [
        ("x, y = map(lambda part: part.to('cpu'), batch)", True),
        ("x, y = map(to_device, batch)", True),
        ("x, y = map(lambda part: part.flip(0), batch)", False),
        ("parts = map(to_device, batch)\n        x, y = parts", False),
        ("x, *y = map(to_device, batch)\n        y = y[0]", False),
    ],
)
def test_what_map_makes_of_a_batch_that_is_unpacked(takes: str, fine: bool) -> None:
    source = TRAINING.replace("for x, y in", "for batch in").replace("        opt", f"        {takes}\n        opt", 1)
    assert (reasons(TO + source) == []) is fine


@pytest.mark.parametrize("found", ["next((name for name in ['a'] if name == chosen), None)", "next(iter(names), None)"])
def test_the_default_of_next_may_be_what_it_gives(found: str) -> None:
    source = f"import sys\nchosen, names = sys.argv[-1], [*sys.argv[1:]]\nfound = {found}\n" + TRAINING.replace(
        "optimizer.step()", "optimizer.step()\n        if found is None:\n            print(loss.item())"
    )
    (read,) = (each for each in followed(source).found.reductions if "loss.item()" in ast.unparse(each))
    assert ast.unparse(read) == "loss.item()"
