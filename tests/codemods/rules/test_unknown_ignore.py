"""Comments that switch off rules which do not exist (DDP402)."""

from __future__ import annotations

import pytest
from ddpify_codemods.rules.always.unknown_ignore import RULE

from tests.codemods.checks import findings_of


@pytest.mark.parametrize(
    ("comment", "hint"),
    [
        ("# ddpify: ignore[DDP0105]", "did you mean DDP105?"),
        ("# ddpify: ignore[speed]", "ddpify rules"),
        ("# ddpify: ignore[DDP105]", ""),
        ("# ddpify: ignore", ""),
    ],
)
def test_names_of_rules(comment: str, hint: str) -> None:
    found = findings_of(RULE, f"x = 1\ny = 2  {comment}\n")
    assert [each.line for each in found] == ([2] if hint else [])
    assert all(each.remedy.startswith(hint) for each in found)
