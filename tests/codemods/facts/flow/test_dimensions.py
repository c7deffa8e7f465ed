"""How many dimensions a tensor has, where that is seen."""

from __future__ import annotations

import pytest
from ddpify_codemods.facts.flow import dimensions
from ddpify_codemods.facts.flow.values import SAME, Value

MATRIX = Value("rows", dimensions=2)
NUMBER = Value(constant=3, host=True)


@pytest.mark.parametrize(("count", "dimension"), [(0, 0), (1, 0), (2, 1), (3, 0), (4, 1), (5, 1)])
def test_softmax_chooses_a_dimension(count: int, dimension: int) -> None:
    assert dimensions.implicit(count) == dimension


def test_the_result_is_another_value_only_where_it_has_to_be() -> None:
    assert dimensions.of_dimensions(MATRIX, 2) is MATRIX
    assert dimensions.of_dimensions(MATRIX, None).dimensions is None


@pytest.mark.parametrize(
    ("name", "dimension", "given", "expected"),
    [
        ("relu", None, [], 2),
        ("div_", None, [NUMBER], 2),
        ("div_", None, [MATRIX], None),
        ("view", None, [NUMBER, NUMBER, NUMBER], 3),
        ("view", None, [Value("size", host=True), NUMBER], 2),
        ("view", None, [SAME], None),
        ("view", None, [], None),
        ("flatten", 1, [NUMBER], 2),
        ("flatten", 2, [NUMBER], 3),
        ("flatten", None, [NUMBER], 4),
        ("flatten", None, [], 1),
        ("flatten", -2, [NUMBER], None),
        ("flatten", 1, [NUMBER, NUMBER], None),
        ("unsqueeze", 1, [NUMBER], 3),
        ("squeeze", 1, [NUMBER], 1),
        ("squeeze", None, [], None),
        ("sum", 1, [NUMBER], 1),
        ("sum", (0, 1), [SAME], 0),
        ("sum", 1, [NUMBER, Value(constant=True, host=True)], None),
        ("max", 1, [NUMBER], None),
        ("softmax", 1, [NUMBER], 2),
        ("sub", None, [Value("rows", dimensions=3)], 3),
        ("sub", None, [SAME], None),
        ("one_hot", None, [NUMBER], 3),
        ("t", None, [], 2),
        ("mean", None, [], 0),
    ],
)
def test_operations(name: str, dimension: object, given: list[Value], expected: int | None) -> None:
    assert dimensions.after_operation(name, MATRIX, dimension, given) == expected


def test_arithmetic() -> None:
    assert dimensions.after_arithmetic(MATRIX, NUMBER) == dimensions.after_arithmetic(NUMBER, MATRIX) == 2
    assert dimensions.after_arithmetic(MATRIX, MATRIX) == 2
    assert dimensions.after_arithmetic(MATRIX, Value("rows", dimensions=3)) == 3
    assert dimensions.after_arithmetic(MATRIX, Value("rows")) is None
    assert dimensions.after_arithmetic(MATRIX, Value(dimensions=3)) is None  # samples may lie elsewhere
    assert dimensions.after_arithmetic(MATRIX, Value(dimensions=0)) == 2
    assert dimensions.after_arithmetic(MATRIX, SAME) is None  # a tensor, perhaps, of more dimensions


def test_modules() -> None:
    assert dimensions.after_module("Linear", MATRIX) == 2
    assert dimensions.after_module("Conv2d", Value("batch")) == 4
    assert dimensions.after_module("Unfold", MATRIX) is None


def test_how_many_dimensions_there_are_at_least() -> None:
    unknown, several = Value("batch"), Value("rows", at_least=2)
    assert dimensions.at_least_after_module("Linear", unknown) == 2
    assert dimensions.at_least_after_module("Linear", Value("rows", at_least=3)) == 3
    assert dimensions.at_least_after_module("ReLU", several) == 2
    assert dimensions.at_least_after_module("ReLU", unknown) == 0
    assert dimensions.at_least_after_module("Flatten", several) == 0
    for name, given, expected in (
        ("relu", [], 2),
        ("linear", [SAME], 2),
        ("unsqueeze", [NUMBER], 3),
        ("squeeze", [], 0),
        ("view", [SAME], 0),
        ("sub", [Value("rows", dimensions=3)], 3),
    ):
        assert dimensions.at_least_after_operation(name, several, None, given) == expected
    assert dimensions.of_dimensions(several, None, 3).at_least == 3
    assert dimensions.of_dimensions(several, 2, 3).at_least == 0


def test_samples_meet_where_the_last_dimensions_meet() -> None:
    """`(B, 1)` and `(B,)` do not, `(T, B, H)` and `(B, H)` do."""
    row, unknown = Value("rows", dimensions=1), Value("batch")
    assert dimensions.meet_otherwise([MATRIX, row])
    assert not dimensions.meet_otherwise([MATRIX, MATRIX, SAME])
    assert not dimensions.meet_otherwise([MATRIX, unknown])
    assert not dimensions.meet_otherwise([Value("rows_second", dimensions=3), MATRIX])
    assert dimensions.meet_otherwise([Value("rows_last", dimensions=2), MATRIX])


def test_what_gives_two_tensors_and_losses_that_are_not_reduced() -> None:
    assert dict(dimensions.parts_of("max", MATRIX, 1, False)) == {0: 1, 1: 1, "values": 1, "indices": 1}
    assert dict(dimensions.parts_of("topk", MATRIX, 1, False))["values"] == 2
    assert dict(dimensions.parts_of("max", MATRIX, 1, True))[0] == 2
    assert not dimensions.parts_of("max", MATRIX, None, False)
    row = Value("rows", dimensions=1)
    assert dimensions.of_losses("cross_entropy", [MATRIX, row]) == 1
    assert dimensions.of_losses("mse_loss", [MATRIX, MATRIX]) == 2
    assert dimensions.of_losses("cosine_embedding_loss", [MATRIX, MATRIX]) is None
    assert dimensions.of_losses("mse_loss", [MATRIX, Value("rows")]) is None
