"""What a rule is made of."""

from __future__ import annotations

import ast

from ddpify_codemods import RULES
from ddpify_codemods.rule import Delete, Insert, Replace, place_of


def test_the_place_of_an_edit() -> None:
    statement = ast.parse("f(x)").body[0]
    assert isinstance(statement, ast.Expr)
    assert place_of(Insert(statement, "y", "")) is statement is place_of(Delete(statement, ""))
    assert place_of(Replace(statement.value, "{}", "")) is statement.value


def test_an_example_is_converted_in_the_style_of_its_folder() -> None:
    styles = {rule.folder: rule.style for rule in RULES}
    assert styles["plain"] == "plain" and styles["exact"] == "exact"
    with_option = next(rule for rule in RULES if rule.option == "resume")
    assert (
        with_option.options and not next(rule for rule in RULES if not rule.option and rule.folder == "exact").options
    )
