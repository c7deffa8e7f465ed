"""Tuples whose entries have names."""

from __future__ import annotations

import pytest

from tests.codemods.plain.test_followed import plain, refusals, training

NET = """\
from collections import namedtuple
from typing import NamedTuple


class Outputs(NamedTuple):
    first: torch.Tensor
    second: torch.Tensor


class Net(nn.Module):
    def __init__(self):
        super().__init__()
        self.a, self.b = nn.Linear(4, 3), nn.Linear(3, 3)

    def forward(self, x):
        {}
        return outputs(hidden, self.b(hidden))


model = Net()
"""
MADE = "hidden, outputs = self.a(x), {}"


def trained(outputs: str, loss: str) -> list[str]:
    """Why a script that trains by such outputs is refused."""
    source = training("0.0").replace("loss = 0.0", f"loss = 0.0\n        {loss}")
    return refusals(plain(source.replace("model = nn.Linear(4, 3)\n", NET.format(MADE.format(outputs)))))


LISTED = 'namedtuple("O", ["first", "second"])'
MADES = ["Outputs", LISTED, 'namedtuple("O", "first, second")', LISTED.replace("[", "(").replace("]", ")")]


@pytest.mark.parametrize("outputs", MADES)
@pytest.mark.parametrize(
    "loss",
    [
        "for each in model(x): loss += F.cross_entropy(each, y)",
        "loss += F.cross_entropy(model(x).second, y)",
        "first, second = model(x); loss += F.cross_entropy(first, y) + F.cross_entropy(second, y)",
    ],
)
def test_each_entry_is_a_tensor(outputs: str, loss: str) -> None:
    assert not trained(outputs, loss)


@pytest.mark.parametrize("outputs", ["library.Outputs", LISTED.replace('"first"', "FIRST")])
def test_what_may_be_one_tensor_or_several_is_not_added_up(outputs: str) -> None:
    assert trained(outputs, "for each in model(x): loss += F.cross_entropy(each, y)")
    assert not trained(outputs, "loss += F.cross_entropy(model(x).second, y)")


def test_the_entries_of_a_list_are_those_of_a_tuple() -> None:
    outputs = "Outputs(*[self.first(x), self.second(x)])"
    appended = LISTED.replace("Outputs(self.first(x), self.second(x))", outputs)
    assert not trained(appended, "loss += F.cross_entropy(model(x).second, y)")
