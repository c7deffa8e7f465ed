"""Along which dimension the samples lie, and what changes that."""

from __future__ import annotations

import pytest
from ddpify_codemods.facts.flow import layout
from ddpify_codemods.facts.flow.values import SAME, Kind, Value


def test_kinds_name_dimensions() -> None:
    assert [layout.axis(kind) for kind in ("batch", "rows", "rows_second", "rows_last", "rows_moved")] == [
        0,
        0,
        1,
        -1,
        None,
    ]
    assert [layout.along(each) for each in (0, 1, -1, 2)] == ["rows", "rows_second", "rows_last", "rows_moved"]


def test_combined_tensors_have_their_samples_at_one_place() -> None:
    assert layout.differ({"rows", "rows_second"}) and not layout.differ({"rows", "batch"})
    assert not layout.differ({"rows", "rows_moved"})
    assert layout.together({"rows", "rows_moved"}) == "rows_moved"


@pytest.mark.parametrize(
    ("moved", "expected"),
    [
        (layout.unsqueezed("rows", 0), "rows_second"),
        (layout.unsqueezed("rows", 1), "rows"),
        (layout.squeezed("rows_second", 0), "rows"),
        (layout.transposed("rows", 0, 1), "rows_second"),
        (layout.transposed("rows", 1, 2), "rows"),
        (layout.turned("rows"), "rows_last"),
        (layout.permuted("rows", (1, 0, 2)), "rows_second"),
        (layout.permuted("rows", (1, 2, 0)), "rows_last"),
        (layout.flattened("rows", 1), "rows"),
        (layout.flattened("rows_second", 0), "rows_moved"),
        (layout.reduced("rows_second", (0,), False), "rows"),
        (layout.reduced("rows_second", (0,), True), "rows_second"),
    ],
)
def test_samples_move(moved: str, expected: str) -> None:
    assert moved == expected


def test_reductions_over_the_samples() -> None:
    assert layout.over_samples("rows", 0) and layout.over_samples("rows", None)
    assert not layout.over_samples("rows", 1) and not layout.over_samples("rows_second", (0, 2))
    assert layout.over_samples("rows_second", -2) and not layout.over_samples("rows_second", -1)
    assert layout.over_samples("rows_second", -1, 2) and not layout.over_samples("rows_second", -2, 4)


def test_reductions_that_may_run_over_the_samples() -> None:
    """Where they lie is not known, or not how many dimensions there are."""
    assert layout.over_samples("rows_moved", 0) and layout.over_samples("rows_moved", (1, 2))
    assert layout.over_samples("rows_last", 1) and layout.over_samples("rows_last", 2)
    assert not layout.over_samples("rows_last", 0) and not layout.over_samples("rows_last", 1, 3)


SIZE, LAST = Value("size"), Value(constant=-1)


@pytest.mark.parametrize(
    ("kind", "sizes", "expected"),
    [
        ("rows_second", [SAME, SIZE, SAME], "rows_second"),  # steps, samples with their heads
        ("rows_second", [LAST, SIZE, SAME], "rows_second"),
        ("rows_second", [SIZE, SAME, SAME], "rows_moved"),
        ("rows_second", [SIZE, SIZE, SAME], "rows_moved"),
        ("rows_second", [SAME, SAME, SAME], "rows_moved"),
        ("rows_second", [Value(constant=3), SIZE, SAME], "rows_second"),
        ("rows_second", [SAME, SIZE], "rows_moved"),
        ("rows_last", [SAME, SIZE, SAME], "rows_moved"),
        ("rows", [SIZE, SAME, SAME], "rows"),
    ],
)
def test_sizes_are_given_anew(kind: Kind, sizes: list[Value], expected: str) -> None:
    assert layout.reshaped(kind, sizes) == expected
