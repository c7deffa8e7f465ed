"""What may be held by the parts of what a collate function computes."""

from __future__ import annotations

import ast

import pytest
from ddpify_codemods.facts.flow.collate_parts import Keyed, Part, Unclear, either, flat, is_of_turn, is_stacked, is_zero
from ddpify_codemods.facts.flow.lengthened import Behind, Lengthened, Missing


def test_all_that_a_part_holds() -> None:
    part: Part = ("one", ("same", Missing()))
    assert flat(part) == ["one", "same", Missing()]


@pytest.mark.parametrize(
    ("part", "stacked"),
    [("stacked", True), (("stacked", ("stacked",)), True), (("stacked", "column"), False), ((), False)],
)
def test_tensors_with_a_row_for_each_sample(part: Part, stacked: bool) -> None:
    assert is_stacked(part) is stacked


@pytest.mark.parametrize(
    ("part", "of_turn"),
    [
        ("place", True),
        (("same", "one"), True),
        (Missing(), True),
        (Behind("0"), True),
        (Lengthened("0"), True),
        (Lengthened("0", of_all=True), False),
        ("longest", False),
        ("column", False),
    ],
)
def test_what_the_next_sample_has_not(part: Part, of_turn: bool) -> None:
    assert is_of_turn(part) is of_turn


def test_one_of_two_parts() -> None:
    assert either("column", "column") == "column"
    assert either("same", "one") == "one"
    assert either(("stacked", "one"), ("stacked", "same")) == ("stacked", "one")
    for other in ("stacked", ("one", "one")):
        with pytest.raises(Unclear):
            either("column", other)


def test_a_dictionary_knows_its_keys() -> None:
    assert (Keyed(["x", "y"], ["stacked", "one"]).keys, Keyed(["x"], ["one"])) == (("x", "y"), ("one",))


@pytest.mark.parametrize(("code", "zero"), [("0", True), ("False", False), ("0.0", True), ("1", False), ("x", False)])
def test_the_number_0(code: str, zero: bool) -> None:
    assert is_zero(ast.parse(code, mode="eval").body) is zero
