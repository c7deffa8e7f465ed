"""Tuples whose entries have names."""

from __future__ import annotations

import pytest
from ddpify_codemods import Result

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


OUT_OF_STEP = """\
from collections import namedtuple
from dataclasses import dataclass
from typing import NamedTuple

Outs = namedtuple("Outs", ["a", "b"])


@dataclass
class Data:
    a: object
    b: object


@dataclass
class Base:
    a: object


@dataclass
class More(Base):
    b: object = None


@dataclass
class Then:
    a: object
    c: object

    def __post_init__(self):
        self.b = self.c


class Over(Outs):
    pass


class Methods(NamedTuple):
    a: object
    b: object

    def twice(self):
        return 2 * self.b


class Entries(dict):
    pass


NAMES = {"0": "a", "1": "b"}
"""
STEP = """\
loss = 0.0
        out = model(x)
        filled, grown = {{}}, []
        for name, each in zip(NAMES, (out, 2 * out)):
            filled[NAMES[name]] = each
        for power in range(2):
            grown.append(out * power)
        part = {}
        loss = part.pow(2).sum() + F.cross_entropy(out, y)"""


def step(part: str) -> Result:
    """What becomes of a script whose loss is a sum over a part of a record, and a mean beside it."""
    source = training("0.0").replace("loss = 0.0", STEP.format(part))
    return plain(source.replace("model = nn.Linear(4, 3)\n", OUT_OF_STEP + "model = nn.Linear(4, 3)\n"))


@pytest.mark.parametrize("record", ["Outs", "Data", "More", "Over", "Methods"])
@pytest.mark.parametrize("given", ["**filled", "**{'a': out, 'b': out}", "out, **{'b': out}", "*grown", "*[out, out]"])
def test_what_a_record_is_given_by_any_way_is_not_the_same_on_all_ranks(record: str, given: str) -> None:
    assert "differentiable_sum(part.pow(2).sum())" in step(f"{record}({given}).b").code


def test_a_record_of_a_mapping_is_unpacked() -> None:
    assert "differentiable_sum(part.pow(2).sum())" in step("Outs(**filled)[1]").code
    assert "differentiable_sum(part.pow(2).sum())" in step("Methods(*grown).twice()").code
    assert "differentiable_sum(part.pow(2).sum())" in step("Then(*[out, out]).b").code


@pytest.mark.parametrize(
    "part", ["Entries(**filled)['b']", "Entries(filled)['b']", "Outs(**dict(zip(NAMES, grown))).b"]
)
def test_what_is_not_seen_to_be_kept_is_refused(part: str) -> None:
    assert refusals(step(part))


def test_a_model_gives_back_a_record_of_a_library_class() -> None:
    """Its fields are followed, whatever else the class does with them."""
    made = OUT_OF_STEP.replace("class Base:", "class Base(library.ModelOutput):")
    source = training("0.0").replace("loss = 0.0", "loss = F.cross_entropy(model(x).b, y)")
    net = NET.partition("class Outputs")[2].partition("class Net")[2]
    net = "class Net" + net.format("return More(b=self.a(x))").replace(
        "        return outputs(hidden, self.b(hidden))\n", ""
    )
    assert not refusals(plain(source.replace("model = nn.Linear(4, 3)\n", f"import library\n{made}\n\n{net}")))
