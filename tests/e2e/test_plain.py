"""Every fixture that the plain style accepts trains on 2 and 3 ranks what one process trains on the same batches: at
every change on one of these numbers, by turns, and by night on both."""

from __future__ import annotations

import functools
import tempfile
from typing import Any

import pytest
from ddpify_codemods import convert

from ddpify.verify import compare, verdict
from ddpify.verify.runs import Run
from ddpify.verify.unions import NEUTRAL, unions
from tests.e2e import fixtures, harness
from tests.e2e.fixtures import Fixture
from tests.e2e.harness import Start
from tests.turns import on_ranks

START = "0"  # where generators begin that a script does not seed, as its conversion does


@functools.cache
def plain(name: str, target: str = "cpu", **options: Any) -> dict[str, bytes]:
    """The files that the plain style changes; none for a fixture that it refuses."""
    return of_fixture(fixtures.load(name), target, **options)


def of_fixture(fixture: Fixture, target: str, **options: Any) -> dict[str, bytes]:
    """The same of a script that is no fixture."""
    return fixtures.converted(fixture, target, style="plain", **options)


def differences(
    fixture: Fixture,
    ranks: int,
    precise: bool = False,
    pretend: str = "",
    target: str = "cpu",
    start: Start | None = None,
    start_original: Start | None = None,
    **options: Any,
) -> list[str]:
    """How a plain conversion differs from the original, which is given the batches that its ranks drew.

    Args:
        fixture: the script. ranks: how many. precise: whether both compute in float64, held to 1e-9. pretend: modules
            for both. target: of the conversion. start, start_original: what runs it, and the original; forked processes
            by default. options: of the conversion.
    """
    original = {name: path.read_bytes() for name, path in fixtures.files(fixture).items()}
    modules = [pretend, "doubled" if precise else "", "" if fixture.compile else "no_dynamo"]
    pretended = {"DDPIFY_PRETEND": " ".join(modules)} if precise or pretend else {}
    sources = original | of_fixture(fixture, target, **options)
    many = harness.run_sources(fixture, sources, ranks, settings=NEUTRAL | pretended, start=start)
    if many.rc:
        return [f"the conversion fails: {many.stderr[-3000:]}"]
    with tempfile.NamedTemporaryFile("w", suffix=".json") as file:
        file.write(unions([many.records[rank] for rank in range(ranks)]))
        file.flush()
        settings = {**NEUTRAL, **pretended, "DDPIFY_UNIONS": file.name, "DDPIFY_SEED": START}

        def alone(**more: str) -> Run:
            shim = fixture.cuda_shim
            return harness.run_sources(fixture, original, 0, shim, start=start_original, settings=settings | more)

        one = alone()
        if one.rc or not one.steps():
            return [f"the original fails: {one.stderr[-3000:]}"]
        text = "\n".join(fixtures.program(fixture).values())
        tolerance = 1e-9 if precise else fixture.tolerance

        def noisy(number: int) -> Run:
            return alone(DDPIFY_NOISE=str(verdict.NOISE), DDPIFY_NOISE_SEED=str(number))

        found = verdict.judge(one, many, ranks, text, noisy, tolerance, given=True)
    return [*map(str, found.differences), *compare.divided(many)]


@pytest.mark.parametrize(("name", "ranks"), on_ranks(fixtures.plain_names()))
def test_plain_conversion_trains_the_same(name: str, ranks: int) -> None:
    fixture = fixtures.load(name)
    found = differences(fixture, ranks)
    if found and "fails" not in found[0]:  # a ReLU that rounding turns over: in float64 it does not
        found = differences(fixture, ranks, precise=True)
    assert not found, "\n".join(found)


def test_converted_modules_import_torch_alone() -> None:
    for name in fixtures.plain_names():
        for code in fixtures.expected(fixtures.load(name), "plain.cpu").values():
            assert b"ddpify" not in code, name


@pytest.mark.nightly  # every test of tests/codemods/plain asks for that of its own script
def test_the_conversion_of_a_conversion_is_itself() -> None:
    for name in fixtures.plain_names():
        fixture = fixtures.load(name)
        once = fixtures.expected(fixture, "plain.cpu")
        program = fixtures.program(fixture) | {
            fixture.folder / relative: code.decode() for relative, code in once.items()
        }
        again = convert(program, "cpu", style="plain")
        assert {path: result.code for path, result in again.items()} == program, name
