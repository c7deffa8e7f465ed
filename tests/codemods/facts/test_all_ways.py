"""The statement behind branches each of which gives a variable its value."""

from __future__ import annotations

import ast

import pytest
from ddpify_codemods.facts.all_ways import behind_all_ways

from tests.codemods.checks import script_of


@pytest.mark.parametrize(
    ("branches", "behind"),
    [
        ("if a:\n    model = 1\nelse:\n    model = 2", "end = 1"),
        ("if a:\n    model = 1\nelif b:\n    model = 2\nelse:\n    model = 3", "end = 1"),
        ("if a:\n    model = 1\nelif b:\n    model = 2", ""),
        ("if a:\n    model = 1", ""),
        ("if a:\n    model = 1\nelse:\n    print(model)", ""),
        ("for a in b:\n    model = 1", ""),
    ],
)
def test_the_statement_behind(branches: str, behind: str) -> None:
    script = script_of(f"{branches}\nend = 1\n")
    found = behind_all_ways(script, script.tree.body[0], lambda each: "model =" in ast.unparse(each))
    assert (ast.unparse(found) if found is not None else "") == behind


def test_nothing_behind_the_last_statement() -> None:
    script = script_of("if a:\n    model = 1\nelse:\n    model = 2\n")
    assert behind_all_ways(script, script.tree.body[0], lambda each: True) is None
