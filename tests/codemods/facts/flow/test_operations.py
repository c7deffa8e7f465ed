"""What operations make of something that holds each sample."""

from __future__ import annotations

import pytest
from ddpify_codemods.facts.flow.operations import on_rows
from ddpify_codemods.facts.flow.values import COUPLES, Kind, Value


@pytest.mark.parametrize(
    ("name", "kind", "dimension", "result"),
    [
        ("mean", "rows", None, "mean"),
        ("mean", "rows", 0, "mean"),
        ("mean", "rows", 1, "rows"),
        ("sum", "rows", 0, "sum"),
        ("sum", "rows_second", 0, "rows"),
        ("softmax", "rows", 1, "rows"),
        ("softmax", "rows", 0, "unknown"),
        ("softmax", "rows_second", 1, "unknown"),
        ("relu", "rows_last", None, "rows_last"),
    ],
)
def test_what_runs_over_samples(name: str, kind: Kind, dimension: int | None, result: str) -> None:
    made = on_rows(name, Value(kind), dimension, [], set())
    assert made is not None and made.kind == result


def test_an_operation_that_is_not_listed_is_unknown() -> None:
    assert on_rows("betainc", Value("rows"), None, [], set()) is None


def test_how_often_classes_occur_is_a_sum_where_it_is_as_long_on_each_rank() -> None:
    for kind in ("rows", "picked"):
        for given, result in ((set[str](), "unknown"), ({"minlength"}, "sum")):
            made = on_rows("bincount", Value(kind), None, [], given)
            assert made is not None and made.kind == result


@pytest.mark.parametrize("name", ["qr", "triu", "fft2"])
def test_what_is_made_of_a_matrix_couples_its_rows(name: str) -> None:
    for dimensions, reason in ((2, COUPLES), (3, "")):
        made = on_rows(name, Value("rows", dimensions=dimensions), None, [], set())
        assert (made.reason if made is not None else "") == reason
