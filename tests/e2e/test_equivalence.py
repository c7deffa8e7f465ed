"""Every fixture, converted for cpu: alone it does what the original did, on 2 and 3 ranks it trains the same.

By turns: at every change each fixture runs on 2 ranks or on 3, and a sixth of them alone; by night all do all of it.

The processes are forked, so that they need not import torch each time. What that cannot show, torchrun does: of those
fixtures for which it may matter how their processes begin, and by night of all.
"""

from __future__ import annotations

import pytest

from ddpify.verify import compare
from tests.e2e import fixtures, harness
from tests.e2e.fixtures import Fixture
from tests.turns import turn

NAMES = [name for name in fixtures.names() if not fixtures.load(name).refused]
# A guard, several files, workers.
STARTED = {"main_guard", "package_project", "augmentation"}
FORKED = [(name, ranks) for name in NAMES for ranks in ("alone", 2, 3) if ranks != 2 or name not in STARTED]
TORCHRUN = [(name, "torchrun") for name in NAMES]


def _marks(name: str, ranks: str | int) -> list[pytest.MarkDecorator]:
    """One worker runs all of a fixture, for which it runs the original once."""
    if ranks == "alone":
        by_day = turn(name, 6) == 0
    else:
        by_day = ranks == "torchrun" if name in STARTED else ranks == 2 + turn(name)
    return [pytest.mark.xdist_group(name), *([] if by_day else [pytest.mark.nightly])]


@pytest.mark.parametrize(("name", "ranks"), [pytest.param(*case, marks=_marks(*case)) for case in [*FORKED, *TORCHRUN]])
def test_conversion_trains_the_same(name: str, ranks: str | int) -> None:
    """ranks: how many forked processes; "torchrun" for two of its."""
    fixture = fixtures.load(name)
    original = harness.run_original(fixture)
    assert original.rc == 0, f"the original fails: {original.stderr[-2000:]}"
    assert original.steps() or not fixture.records, "the original makes no optimizer step"
    if ranks == "alone":
        converted = harness.run_converted_alone(fixture)
        differences = list(compare.identical(original, converted))
    else:
        world_size = 2 if isinstance(ranks, str) else ranks
        run = harness.run_converted if ranks == "torchrun" else harness.run_converted_forked
        converted = run(fixture, world_size)
        differences = list(compare.equivalent(original, converted, world_size, fixture.tolerance))
        differences += compare.divided(converted) if fixture.divided else ()
        if differences and converted.rc == 0:
            differences = in_float64(fixture, world_size)
    assert not differences, "\n".join([*differences, "--- stderr", converted.stderr[-3000:]])


def in_float64(fixture: Fixture, ranks: int) -> list[str]:
    """How both differ in float64, by more than 1e-9: for what makes the rounding of float32 grow past its tolerance.

    On which processors it does depends on the order in which their kernels add.
    """
    settings = {"DDPIFY_PRETEND": "no_dynamo doubled"}
    files = {name: path.read_bytes() for name, path in fixtures.files(fixture).items()}
    original = harness.run_sources(fixture, files, settings=settings)
    run = harness.run_sources(fixture, harness.converted_sources(fixture), ranks, settings=settings)
    assert original.rc == 0 and original.steps(), original.stderr[-2000:]
    found = compare.equivalent(original, run, ranks, 1e-9)
    return [*found, *(compare.divided(run) if fixture.divided else ())]


# What draws for its samples, and one whose rounding may grow past its tolerance.
OF_THEIR_OWN = {"augmentation", "contrastive", "dropout", "loaders_from_helper", "tied_weights", "vae"}
OFTEN = {"main_guard", "masked_rnn", "saved_images", "skip_nan"}


@pytest.mark.parametrize(
    "name",
    [
        pytest.param(name, marks=[pytest.mark.xdist_group(name), *([] if name in OFTEN else [pytest.mark.nightly])])
        for name in NAMES
        if name not in OF_THEIR_OWN
    ],
)
def test_what_draws_nothing_trains_the_same_as_people_run_it(name: str) -> None:
    """Without DDPIFY_RANDOM=original, which loads whole what draws, and lets a mode see each operation."""
    fixture = fixtures.load(name)
    run = harness.run_sources(fixture, harness.converted_sources(fixture), 2, settings={"DDPIFY_RANDOM": ""})
    differences = compare.equivalent(harness.run_original(fixture), run, 2, fixture.tolerance)
    found = [*differences, *(compare.divided(run) if fixture.divided else ())]
    assert not found, "\n".join([*found, "--- stderr", run.stderr[-3000:]])


@pytest.mark.parametrize("name", [name for name in fixtures.names() if fixtures.load(name).refused])
def test_refusal_names_its_rule_and_changes_nothing(name: str) -> None:
    from ddpify_codemods import convert

    fixture = fixtures.load(name)
    program = fixtures.program(fixture)
    results = convert(program, "cpu")
    findings = [finding for result in results.values() for finding in result.findings]
    assert fixture.refused in [finding.rule for finding in findings if finding.severity == "refused"]
    assert {path: result.code for path, result in results.items()} == program
