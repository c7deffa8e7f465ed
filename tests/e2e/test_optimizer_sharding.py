"""With --optimizer-sharding a conversion trains, prints and saves what one process does, in both styles."""

from __future__ import annotations

import pytest

from ddpify.verify import compare
from tests.e2e import fixtures, harness
from tests.e2e.test_plain import differences, plain

nightly = pytest.mark.nightly


@pytest.mark.parametrize(
    ("name", "ranks"),
    [("resume", 3), *(pytest.param(name, 2, marks=nightly) for name in ("onecycle", "gan", "amp", "trainer_class"))],
)
def test_the_exact_style(name: str, ranks: int) -> None:
    fixture = fixtures.load(name)
    changed = fixtures.converted(fixture, "cpu", optimizer_sharding=True)
    assert any(b"optimizer_class=" in code for code in changed.values())
    original = harness.run_original(fixture)
    files = {name: path.read_bytes() for name, path in fixtures.files(fixture).items()}
    for world_size in (0, ranks):
        run = harness.run_sources(fixture, files | changed, world_size)
        assert run.rc == 0, run.stderr[-3000:]
        if world_size:
            found = list(compare.equivalent(original, run, ranks, fixture.tolerance))
        else:
            found = list(compare.identical(original, run))
        assert not found, "\n".join(found)


@pytest.mark.parametrize(
    ("name", "ranks"),
    [("resume", 2), *(pytest.param(name, 3, marks=nightly) for name in ("frozen_backbone", "amp", "trainer_class"))],
)
def test_the_plain_style(name: str, ranks: int) -> None:
    assert any(b"optimizer_class=" in code for code in plain(name, optimizer_sharding=True).values())
    fixture = fixtures.load(name)
    assert not differences(fixture, ranks, optimizer_sharding=True)
