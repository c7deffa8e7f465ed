"""What values hold that differs between the ranks, and which of it can be added up over them."""

from __future__ import annotations

from ddpify_codemods.facts.flow.held_values import additive, is_mixed, is_record, is_tuple, local_entries, settled
from ddpify_codemods.facts.flow.values import Items, Value, of


def test_what_can_be_added_up() -> None:
    assert additive(Value("sum")) == ("sum", "number")
    assert additive(Value("rows")) is None
    assert local_entries(of(Items("list", {0: Value("sum")}))) and not local_entries(Value())
    assert not settled(Value("sum")).is_local


def test_numbers_of_a_rank_beside_others() -> None:
    assert is_record([Value("sum"), Value()]) and not is_record([Value("sum"), Value("sum")])
    assert is_mixed(of(Items("dict", {"loss": Value("sum"), "epoch": Value()})))
    assert not is_mixed(of(Items("dict", {"loss": Value("sum")})))
    assert is_tuple(of(Items("tuple", {}))) and not is_tuple(of(Items("list", {})))
