"""Quotes within f-strings."""

from __future__ import annotations

import libcst as cst
import pytest
from ddpify_codemods.quotes import with_other_quotes


@pytest.mark.parametrize(
    ("before", "after", "written"),
    [
        ('f"{x}"', 'f"{f(x, "a")}"', "f\"{f(x, 'a')}\""),
        ("f'{x}'", "f'{f(x, 'a')}'", "f'{f(x, \"a\")}'"),
        ('f"{x}"', "f\"{f(x, 'a')}\"", "f\"{f(x, 'a')}\""),
        ('f"""{x}"""', 'f"""{f(x, "a")}"""', 'f"""{f(x, "a")}"""'),
        ('f"{x["a"]}"', 'f"{f(x["a"])}"', 'f"{f(x["a"])}"'),
    ],
)
def test_new_strings_do_not_end_the_f_string(before: str, after: str, written: str) -> None:
    old, new = cst.parse_expression(before), cst.parse_expression(after)
    assert isinstance(old, cst.FormattedString) and isinstance(new, cst.FormattedString)
    assert cst.Module([]).code_for_node(with_other_quotes(old, new)) == written
