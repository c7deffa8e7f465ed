"""What functions are given by those that call them: weights of classes, as the script made them."""

from __future__ import annotations

import pytest

from tests.codemods.facts.flow.followed import TRAINING, followed

WEIGHTS = "weights = torch.rand(3)\n"
LOSS = """\
class Loss(nn.Module):
    def forward(self, out, y, weight=None):
        return F.nll_loss(out.log_softmax(1), y, weight=weight)
criterion = Loss()
"""
FUNCTION = """\
def score(out, y, w):
    return F.cross_entropy(out, y, w)
def criterion(out, y, weight):
    return score(out, y, weight)
"""


@pytest.mark.parametrize("made", [LOSS, FUNCTION, FUNCTION.replace("weight)\n", "w=weight)\n")])
@pytest.mark.parametrize("given", ["weights", "weight=weights"])
def test_weights_that_are_handed_on_are_weighed(made: str, given: str) -> None:
    code = WEIGHTS + made + TRAINING.replace("F.cross_entropy(model(x), y)", f"criterion(model(x), y, {given})")
    found = followed(code)
    assert not found.problems and not found.found.joined
    assert [each.count for each in found.found.weighed.values()] == [f"{'weight' if made is LOSS else 'w'}[y].sum()"]


@pytest.mark.parametrize(
    ("old", "new"),
    [
        ("weights = torch.rand(3)", "weights = None if test_set else torch.rand(3)"),
        ("weights = torch.rand(3)", "weights = CONFIG['weights']"),
        ("    return score", "    weight = weight or None\n    return score"),
        ("y, weights)", "y, *weights)"),
    ],
)
def test_weights_that_may_be_none_are_not(old: str, new: str) -> None:
    code = WEIGHTS + FUNCTION + TRAINING.replace("F.cross_entropy(model(x), y)", "criterion(model(x), y, weights)")
    assert old in code
    assert not followed(code.replace(old, new)).found.weighed
