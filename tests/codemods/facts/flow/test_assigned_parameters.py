"""Parameters that a model gets behind its wrapper, which averages those that it had."""

from __future__ import annotations

import pytest

from tests.codemods.plain.test_followed import plain, refusals, training

MADE = "optimizer = torch.optim.SGD("
LOADS = "model.load_state_dict(torch.load('model.pt'){})\n"


@pytest.mark.parametrize(
    ("given", "refused"),
    [(", assign=True", True), (", assign=len('a') > 0", True), (", assign=False", False), ("", False)],
)
def test_parameters_of_a_file_in_the_place_of_those_that_are_averaged(given: str, refused: bool) -> None:
    head, made, tail = training().partition(MADE)
    behind = head + made + tail.replace("\n", "\n" + LOADS.format(given), 1)
    assert any("other parameters here" in each for each in refusals(plain(behind))) is refused


@pytest.mark.parametrize("where", ["before", "after"])
def test_before_the_wrapper_and_behind_training_they_are_as_they_were(where: str) -> None:
    head, made, tail = training().partition(MADE)
    loads = LOADS.format(", assign=True")
    source = head + loads + made + tail if where == "before" else head + made + tail + loads
    assert not refusals(plain(source))


@pytest.mark.parametrize(
    ("other", "refused"),
    [("teacher = nn.Linear(4, 3)", False), ("teacher = model", True), ("teacher = model[0]", True)],
)
def test_another_network_may_get_them(other: str, refused: bool) -> None:
    head, made, tail = training().partition(MADE)
    head = head.replace("model = nn.Linear(4, 3)", "model = nn.Sequential(nn.Linear(4, 3))")
    loads = f"{other}\nteacher.load_state_dict(torch.load('model.pt'), assign=True)\n"
    result = plain(head + made + tail.replace("\n", "\n" + loads, 1))
    assert any("other parameters here" in each for each in refusals(result)) is refused
