from __future__ import annotations

import ast
from pathlib import Path

import pytest
from ddpify_codemods.facts.partials import partial_of
from ddpify_codemods.reading import read


@pytest.mark.parametrize(
    ("code", "function"),
    [
        ("functools.partial(a.b, 3)", "a.b"),
        ("known(a)", "a"),
        ("other(a)", None),
        ("functools.partial(*a)", None),
        ("functools.partial()", None),
        ("functools.partial", None),
    ],
)
def test_whose_arguments_are_kept(code: str, function: str | None) -> None:
    text = f"import functools\nfrom functools import partial as known\n{code}\n"
    script = read({Path("train.py"): text})[1][0]
    statement = script.tree.body[-1]
    assert isinstance(statement, ast.Expr)
    found = partial_of(script, statement.value)
    assert (None if found is None else ast.unparse(found)) == function
