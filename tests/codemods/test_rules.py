"""The examples of the rules are their documentation and their tests."""

from __future__ import annotations

from pathlib import Path

import pytest
from ddpify_codemods import RULES, Rule, convert

PATH = Path("train.py")


@pytest.mark.parametrize("rule", RULES, ids=lambda rule: rule.id)
def test_example(rule: Rule) -> None:
    modernize = rule.folder == "modernize"
    result = convert({PATH: rule.before}, rule.target, modernize=modernize, style=rule.style, **rule.options)[PATH]
    if rule.folder == "lint":
        better = convert({PATH: rule.after}, rule.target)[PATH]
        assert rule.id in {finding.rule for finding in result.findings}
        assert rule.id not in {finding.rule for finding in better.findings}
        assert (result.code, better.code) == (rule.before, rule.after)
    elif rule.after:
        assert result.code == rule.after
    else:
        assert {finding.rule for finding in result.findings if finding.severity == "refused"} == {rule.id}
        assert result.code == rule.before


def test_ids_are_unique() -> None:
    assert len({rule.id for rule in RULES}) == len(RULES)


@pytest.mark.parametrize("rule", RULES, ids=lambda rule: rule.id)
def test_every_rule_explains_itself(rule: Rule) -> None:
    assert rule.title and rule.why.strip() and not rule.title.endswith(".")
