"""Where an expression is computed that stands in a function without a name."""

from __future__ import annotations

import ast
from pathlib import Path

import pytest
from ddpify_codemods.facts.flow.deferred import run_at
from ddpify_codemods.facts.flow.program import Program
from ddpify_codemods.reading import read


@pytest.mark.parametrize(
    ("code", "lines"),
    [
        ("a = fetch()", [1]),
        ("f = lambda: fetch()", []),
        ("f = lambda: fetch()\na = f()\nb = [f()]", [2, 3]),
        ("def g():\n    f = lambda: fetch()\n    return f()\ndef h(f):\n    f()", [3]),
        ("f = lambda: fetch()\nlen(f)\nsorted(f)\nf.keys()", []),
        ("f = lambda: fetch()\ng(f)", None),
        ("f = lambda: fetch()\ng(f.get)", None),
        ("f = lambda: fetch()\nfor g in f.values():\n    g()", None),
        ("f = g = lambda: fetch()", None),
        ("a.f = lambda: fetch()", None),
        ("f = lambda: fetch()\ng = f\nf = g\na = g()", None),
        ("def g(f=fetch()):\n    f()", [1]),
    ],
)
def test_where_it_runs(code: str, lines: list[int] | None) -> None:
    script = read({Path("train.py"): code})[1][0]
    call = next(each for each in script.find(ast.Call) if ast.unparse(each.func) == "fetch")
    places = run_at(Program((script,)), script, call)
    assert (None if places is None else [statement.lineno for _, statement in places]) == lines
