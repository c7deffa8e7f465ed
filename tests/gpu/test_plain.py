"""Every fixture that the plain style accepts trains on GPUs what one trains on the same batches."""

from __future__ import annotations

from dataclasses import replace

import pytest

from tests.e2e import fixtures
from tests.e2e.test_plain import differences
from tests.gpu.ranks import start


@pytest.mark.parametrize("name", fixtures.plain_names())
def test_plain_conversion_trains_the_same_on_gpus(name: str) -> None:
    fixture = replace(fixtures.load(name), cuda_shim=False)

    def found(precise: bool) -> list[str]:
        pretend = fixture.pretend_on_gpu
        return differences(fixture, 2, precise, pretend, target="cuda", start=start, start_original=start)

    first = found(precise=False)
    if first and "fails" not in first[0]:  # a ReLU that rounding turns over: in float64 it does not
        first = found(precise=True)
    assert not first, "\n".join(first)
