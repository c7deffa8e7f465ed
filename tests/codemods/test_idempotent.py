"""The conversions of all fixtures: as expected, and stable (E6)."""

from __future__ import annotations

import pytest

from tests.e2e import fixtures
from tests.turns import in_turn
from tests.update_fixtures import TARGETS, styles

KEPT = [(name, target) for name in fixtures.names() for target in (*TARGETS, *fixtures.load(name).also)]


EXACT = [(name, target) for name, target in KEPT if len(styles(target)) == 2]


@pytest.mark.parametrize(("name", "target"), EXACT)
def test_conversion_is_the_expected_one(name: str, target: str) -> None:
    fixture = fixtures.load(name)
    converted, expected = fixtures.converted(fixture, target), fixtures.expected(fixture, target)
    assert _texts(converted) == _texts(expected), "if this is as wanted: python -m tests.update_fixtures"


@pytest.mark.parametrize(("name", "target"), KEPT)
def test_plain_conversion_is_the_expected_one(name: str, target: str) -> None:
    fixture = fixtures.load(name)
    converted, expected = (
        fixtures.converted(fixture, target, style="plain"),
        fixtures.expected(fixture, f"plain.{target}"),
    )
    assert _texts(converted) == _texts(expected), "if this is as wanted: python -m tests.update_fixtures"


TWICE = [(name, target) for name in fixtures.names() if not fixtures.load(name).refused for target in TARGETS]


@pytest.mark.parametrize(("name", "target"), in_turn(TWICE))
def test_converting_twice_is_converting_once(name: str, target: str) -> None:
    """The first conversion is the expected one, by the test above."""
    from ddpify_codemods import convert

    fixture = fixtures.load(name)
    once = fixtures.program(fixture)
    for relative in fixtures.expected(fixture, target):
        once[fixture.folder / relative] = fixtures.decode(fixtures.expected_path(fixture, target, relative))[0]
    assert {path: result.code for path, result in convert(once, target).items()} == once


def _texts(files: dict[str, bytes]) -> dict[str, str]:
    return {relative: content.decode("utf-8", "backslashreplace") for relative, content in files.items()}
