"""Calls in f-strings are replaced as text."""

from __future__ import annotations

import ast

from ddpify_codemods.facts.f_strings import with_calls_replaced

from tests.codemods.checks import script_of


def replaced(source: str, said: dict[str, str]) -> str:
    script = script_of(source)
    return with_calls_replaced(script, next(script.find(ast.JoinedStr)), said)


def test_a_call_is_replaced_and_its_quotes_follow() -> None:
    before = 'print(f"rank {hvd.rank()}")'
    assert replaced(before, {"hvd.rank()": 'ask("rank")'}) == "f\"rank {ask('rank')}\""


def test_nothing_changes_where_the_call_is_not() -> None:
    assert replaced("print(f'{x}')", {"hvd.rank()": "dist.get_rank()"}) == ""


def test_braces_that_a_template_would_fill_are_left() -> None:
    assert replaced("print(f'{hvd.rank()} {{}}')", {"hvd.rank()": "dist.get_rank()"}) == ""
