"""Fixtures that were converted to the plain style and taken back train what the original trains, bit for bit."""

from __future__ import annotations

from pathlib import Path

import pytest
from ddpify_codemods import convert

from ddpify.verify import compare
from tests.e2e import fixtures, harness
from tests.e2e.fixtures import Fixture

UNSEEDED = {"siamese"}  # it draws from numpy, which its conversion seeds
# A wrapper that goes through functions and comes back; numbers and files; several modules.
USUAL = {"frozen_backbone", "saved_images", "three_modules"}
NAMES = [
    pytest.param(name, marks=() if name in USUAL else pytest.mark.nightly)
    for name in fixtures.plain_names()
    if name not in UNSEEDED
]


def plain(fixture: Fixture) -> dict[Path, str]:
    """The program as the plain style has it for CPUs."""
    kept = {fixture.folder / name: code.decode() for name, code in fixtures.expected(fixture, "plain.cpu").items()}
    return fixtures.program(fixture) | kept


def sources(fixture: Fixture, program: dict[Path, str]) -> dict[str, bytes]:
    """All files of a fixture, with those of its program as they are given."""
    given = {path.relative_to(fixture.folder).as_posix(): text.encode() for path, text in program.items()}
    return {name: path.read_bytes() for name, path in fixtures.files(fixture).items()} | given


@pytest.mark.parametrize("name", NAMES)
def test_on_one_device_it_does_what_the_original_does(name: str) -> None:
    fixture = fixtures.load(name)
    back = {path: result.code for path, result in convert(plain(fixture), "none").items()}
    assert back != plain(fixture)
    run = harness.run_sources(fixture, sources(fixture, back), cuda_shim=fixture.cuda_shim)
    differences = list(compare.identical(harness.run_original(fixture), run))
    assert not differences, "\n".join([*differences, "--- stderr", run.stderr[-3000:]])


@pytest.mark.parametrize("name", ["grad_accumulation", pytest.param("three_modules", marks=pytest.mark.nightly)])
def test_in_the_exact_style_it_trains_the_same(name: str) -> None:
    fixture = fixtures.load(name)
    exact = {path: result.code for path, result in convert(plain(fixture), "cpu", style="exact").items()}
    assert any("ddpify_runtime" in text for text in exact.values())
    run = harness.run_sources(fixture, sources(fixture, exact), 2)
    differences = list(compare.equivalent(harness.run_original(fixture), run, 2, fixture.tolerance))
    assert not differences, "\n".join([*differences, "--- stderr", run.stderr[-3000:]])
