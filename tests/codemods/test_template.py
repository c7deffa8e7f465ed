"""Put expressions into a template."""

from __future__ import annotations

import libcst as cst
import pytest
from ddpify_codemods.template import fill


@pytest.mark.parametrize(
    ("template", "expression", "filled"),
    [
        ("f({})", "x + 1", "f(x + 1)"),
        ("{}.cpu()", "x", "x.cpu()"),
        ("{}.cpu()", "x + 1", "(x + 1).cpu()"),
        ("{} // n", "(a + b)", "((a + b) // n)"),
        ("lambda: {}", "x + 1", "lambda: x + 1"),
    ],
)
def test_parentheses_stand_where_they_are_needed(template: str, expression: str, filled: str) -> None:
    module = cst.Module([])
    assert module.code_for_node(fill(template, cst.parse_expression(expression), (), module)) == filled


def test_parts_go_where_the_braces_stand() -> None:
    module, parts = cst.Module([]), [cst.Name("a"), cst.Name("b")]
    assert module.code_for_node(fill("g({}, {})", cst.Name("x"), parts, module)) == "g(a, b)"
