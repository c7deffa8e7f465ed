"""What an expression may hold on the ranks of a distributed run."""

from __future__ import annotations

import ast

import pytest
from ddpify_codemods.facts.flow.values import (
    COUPLES,
    Items,
    Kind,
    Library,
    Module,
    Value,
    cut,
    entries,
    join,
    made_of,
    of,
    root_of,
)

MODEL = ast.Call(ast.Name("Net"), [], [])
CALL = ast.Call(ast.Name("net"), [], [])


def test_values_of_which_one_differs_between_the_ranks() -> None:
    rows = Value("rows", forwards=frozenset([(CALL, MODEL)]))
    made = made_of("sum", [rows, Value()])
    assert made.is_local and made.forwards == {(CALL, MODEL)} and not Value().is_local
    assert cut(made).forwards == frozenset()


def test_entries_of_lists_in_lists() -> None:
    inner = of(Items("list", {0: Value("sum")}))
    outer = of(Items("tuple", {0: inner, "a": Value("rows")}))
    assert {"sum", "rows"} <= {each.kind for each in entries([outer])}


def test_one_of_two_values() -> None:
    assert join(Value("rows"), Value("rows")).kind == "rows"
    assert join(Value("rows"), Value("rows_second")).kind == "rows_moved"  # along one of two dimensions
    assert join(Value("rows"), Value("picked")).kind == join(Value("rows"), Value("mean")).kind == "unknown"
    both = join(of(Library("torch")), of(Library("math")))
    assert set(both.only(Library)) == {Library("torch"), Library("math")}


def test_a_part_belongs_to_its_model() -> None:
    model = Module(CALL)
    assert root_of(Module(CALL, parent=Module(CALL, parent=model))) is model


@pytest.mark.parametrize("kind", ["rows_second", "rows_last", "rows_moved"])
def test_some_samples_behind_another_dimension_are_not_as_many_on_each_rank(kind: Kind) -> None:
    found = made_of(kind, [Value("picked")])
    assert (found.kind, found.reason) == ("unknown", COUPLES)
    assert made_of(kind, [Value("rows")]).kind == kind
