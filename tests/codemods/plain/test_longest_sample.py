"""Models that look at how long the longest sample of their batch is, which is another one on each rank."""

from __future__ import annotations

import pytest

from .test_followed import plain, refusals, training

NET = """\
class Net(nn.Module):
    def __init__(self):
        super().__init__()
        self.cell = nn.RNNCell(1, 3)

    def forward(self, x, y, mask=None):
        {body}


model = Net()
"""
STEPS = """\
state = torch.zeros(len(x), 3)
        for step in range({turns}):
            state = self.cell(x[:, step : step + 1], state)
        return state"""


def net(body: str, loss: str = "F.cross_entropy(model(x, y), y)") -> list[str]:
    """Why a script with such a model is refused."""
    return refusals(plain(training(loss).replace("model = nn.Linear(4, 3)\n", NET.format(body=body))))


@pytest.mark.parametrize("turns", ["max(y)", "y.max()", "max(y.tolist())"])
def test_as_many_steps_as_the_longest_sample_has_are_refused(turns: str) -> None:
    assert net(STEPS.format(turns=turns))


@pytest.mark.parametrize("turns", ["4", "x.size(1)", "x.shape[1]"])
def test_as_many_steps_as_every_sample_has_are_divided(turns: str) -> None:
    assert not net(STEPS.format(turns=turns))


@pytest.mark.parametrize(
    ("end", "right"), [("y.max()", False), ("max(y)", False), ("3", True), ("x.size(1) - 1", True)]
)
def test_samples_that_are_cut_behind_the_longest_of_a_rank_are_refused(end: str, right: bool) -> None:
    assert bool(net(f"return torch.ones(1, 3) * x[:, :{end}].sum(1, keepdim=True) * self.cell.bias_ih")) is not right


MASKED = "F.cross_entropy(model(x, y, x > 0.5), y)"
OWN = """\
if {test}:
            x = x * mask
        return x.sum(1, keepdim=True) * self.cell.bias_ih"""


@pytest.mark.parametrize("test", ["mask != None", "mask is not None", "not mask == None"])
def test_a_mask_that_may_be_none_says_the_same_on_all_ranks(test: str) -> None:
    assert bool(net(OWN.format(test=test), MASKED)) is test.startswith("not")  # seen where it is the whole test


@pytest.mark.parametrize("test", ["mask.any() != None and mask.any()", "mask.sum() != 0", "mask.all()"])
def test_what_a_mask_holds_does_not(test: str) -> None:
    assert net(OWN.format(test=test), MASKED)
