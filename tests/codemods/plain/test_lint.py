"""The rules for hand-written code find nothing in plain conversions; local BatchNorm, which they note, DDP611 says."""

from __future__ import annotations

from pathlib import Path

import pytest
from ddpify_codemods import convert

from tests.e2e import fixtures


@pytest.mark.parametrize("target", ["cpu", "cuda"])
@pytest.mark.parametrize("name", fixtures.names())
def test_lint_finds_nothing_in_plain_code(name: str, target: str) -> None:
    fixture = fixtures.load(name)
    plain = fixtures.expected(fixture, f"plain.{target}")
    if not plain:
        return  # refused
    changed: dict[Path, str] = {fixture.folder / relative: code.decode() for relative, code in plain.items()}
    again = convert({**fixtures.program(fixture), **changed}, target)
    found = [finding for result in again.values() for finding in result.findings]
    assert [each for each in found if each.rule.startswith("DDP5") and each.severity != "note"] == []
