"""Every fixture, converted for cuda, on GPUs: held against the original on one GPU after every step."""

from __future__ import annotations

import functools
from dataclasses import replace
from typing import Any

import pytest

from ddpify.verify import compare
from ddpify.verify.runs import Run
from tests.e2e import fixtures, harness
from tests.e2e.fixtures import Fixture
from tests.gpu.ranks import start

# Kernels are chosen by the size of the batch, and add in another order.
TOLERANCE = 1e-5
FLOAT16 = 2**-9  # how much a sum of products differs, when each is rounded to float16
LIMIT = 300.0  # seconds; it takes 5 to 30

NAMES = [name for name in fixtures.names() if not fixtures.load(name).refused]


@pytest.mark.parametrize(
    ("name", "ranks"),
    [pytest.param(name, ranks, marks=pytest.mark.xdist_group(name)) for name in NAMES for ranks in (0, 2, 3)],
)
def test_conversion_trains_the_same_on_gpus(name: str, ranks: int) -> None:
    """ranks: 0 for one process without a launcher."""
    fixture = fixtures.load(name)
    original = on_gpus(fixture)
    assert original.rc == 0, f"the original fails: {original.stderr[-3000:]}"
    converted = on_gpus(fixture, ranks, target="cuda")
    differences = list(compare.equivalent(original, converted, max(1, ranks), max(fixture.tolerance, TOLERANCE)))
    if fixture.divided and ranks and not fixture.whole_on_gpu:
        differences += compare.divided(converted)
    assert not differences, "\n".join([*differences, "--- stderr", converted.stderr[-3000:]])
    assert original.records or not fixture.records


@pytest.mark.parametrize("name", ["amp", "amp_old"])
def test_in_float16_a_gradient_differs_by_its_rounding(name: str) -> None:
    """Later ones differ more, as they would after any rounding; the table runs these without autocast."""
    fixture = replace(fixtures.load(name), pretend_on_gpu="")
    original, converted = on_gpus(fixture, steps=1), on_gpus(fixture, 2, target="cuda", steps=1)
    assert (original.rc, converted.rc) == (0, 0), converted.stderr
    [(gradient, _)] = compare.distances(original.steps(), converted.steps())
    assert 0 < gradient <= FLOAT16


@functools.cache
def on_gpus(fixture: Fixture, ranks: int = 0, target: str = "", steps: int = 0, **options: Any) -> Run:
    """Run the original, or what is made of it for a target.

    Args:
        steps: after how many it ends; 0: at its end. options: of the conversion.
    """
    sources = {name: path.read_bytes() for name, path in fixtures.files(fixture).items()}
    if target:
        sources |= fixtures.converted(fixture, target, **options)
    pretend = " ".join(filter(None, [fixture.pretend_on_gpu, "" if fixture.compile else "no_dynamo"]))
    settings = {"DDPIFY_PRETEND": pretend, "DDPIFY_STEPS": str(steps)}
    native = replace(fixture, cuda_shim=False)
    run = harness.run_sources(native, sources, ranks, limit=LIMIT, start=start, settings=settings)
    # TensorBoard names its files by time and process, and writes both into them.
    return replace(run, files={name: value for name, value in run.files.items() if "tfevents" not in name})
