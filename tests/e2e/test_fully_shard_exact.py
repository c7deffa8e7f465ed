"""With --strategy fsdp2 a conversion trains, prints and saves what one process does, in the exact style."""

from __future__ import annotations

import pytest

from ddpify.verify import compare
from tests.e2e import fixtures, harness

NAMES = fixtures.names()
ACCEPTED = [name for name in NAMES]


@pytest.mark.parametrize(("name", "ranks"), [(n, r) for n in NAMES for r in (0, 2, 3)])
def test_it_trains_the_same(name: str, ranks: int) -> None:
    fixture = fixtures.load(name)
    changed = fixtures.converted(fixture, "cpu", fully_sharded=True)
    if not any(b"fully_shard(" in code for code in changed.values()):
        pytest.skip()
    original = harness.run_original(fixture)
    files = {name: path.read_bytes() for name, path in fixtures.files(fixture).items()}
    run = harness.run_sources(fixture, files | changed, ranks, settings={"DDPIFY_PRETEND": ""})
    assert run.rc == 0, run.stderr[-3000:]
    if ranks:
        found = [*compare.equivalent(original, run, ranks, fixture.tolerance)]
        found += compare.divided(run) if fixture.divided else ()
    else:
        found = [*compare.identical(original, run)]
    assert not found, "\n".join([*found, run.stderr[-3000:]])
