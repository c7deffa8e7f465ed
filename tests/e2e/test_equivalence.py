"""Every fixture, converted for cpu: alone it does what the original did, on 2 and 3 ranks it trains the same.

With 2 processes torchrun starts them; the others are forked, so that they need not import torch each time.
"""

from __future__ import annotations

import pytest

from ddpify.verify import compare
from tests.e2e import fixtures, harness


@pytest.mark.parametrize("ranks", ["alone", 2, 3])
@pytest.mark.parametrize("name", [name for name in fixtures.names() if not fixtures.load(name).refused])
def test_conversion_trains_the_same(name: str, ranks: str | int) -> None:
    fixture = fixtures.load(name)
    original = harness.run_original(fixture)
    assert original.rc == 0, f"the original fails: {original.stderr[-2000:]}"
    assert original.steps() or not fixture.records, "the original makes no optimizer step"
    if isinstance(ranks, str):
        converted = harness.run_converted_alone(fixture)
        differences = list(compare.identical(original, converted))
    else:
        run = harness.run_converted if ranks == 2 else harness.run_converted_forked
        converted = run(fixture, ranks)
        differences = list(compare.equivalent(original, converted, ranks, fixture.tolerance))
        differences += compare.divided(converted) if fixture.divided else ()
    assert not differences, "\n".join([*differences, "--- stderr", converted.stderr[-3000:]])


@pytest.mark.parametrize("name", [name for name in fixtures.names() if fixtures.load(name).refused])
def test_refusal_names_its_rule_and_changes_nothing(name: str) -> None:
    from ddpify_codemods import convert

    fixture = fixtures.load(name)
    program = fixtures.program(fixture)
    results = convert(program, "cpu")
    findings = [finding for result in results.values() for finding in result.findings]
    assert fixture.refused in [finding.rule for finding in findings if finding.severity == "refused"]
    assert {path: result.code for path, result in results.items()} == program
