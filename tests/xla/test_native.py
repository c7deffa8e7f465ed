"""One all-reduce in place of buckets, on XLA devices: still what one process on a CPU trains."""

from __future__ import annotations

import pytest

from ddpify.verify import compare
from tests.e2e import fixtures, harness
from tests.xla import test_equivalence


@pytest.mark.parametrize("name", [pytest.param("main_guard", marks=pytest.mark.nightly), "two_backwards"])
def test_one_all_reduce_trains_the_same(name: str) -> None:
    fixture = fixtures.load(name)
    converted = test_equivalence.on_devices(fixture, 2, xla_reduce="native")
    tolerance = max(fixture.tolerance, test_equivalence.TOLERANCE)
    differences = list(compare.equivalent(harness.run_original(fixture), converted, 2, tolerance))
    assert not differences, "\n".join([*differences, converted.stderr[-3000:]])
