"""Every fixture, converted for xla, on CPU devices of real torch_xla: held against the original after every step.

The reference is the original in one process on the CPU. Where the numbers come from the device's own generator, or are
computed in bfloat16, it is the conversion on one XLA device. A few of each kind run by default; the whole table:
`make xla-all`.
"""

from __future__ import annotations

import functools
import os
from dataclasses import replace

import pytest

from ddpify.verify import compare
from ddpify.verify.runs import Run
from tests.e2e import fixtures, harness
from tests.e2e.fixtures import Fixture
from tests.xla import forked

LIMIT = 400.0  # seconds; it takes 10 to 30

NAMES = [name for name in fixtures.names() if not fixtures.load(name).refused and not fixtures.load(name).not_on_xla]
BY_DEFAULT = {
    2: {"main_guard", "ragged", "batchnorm", "dropout", "multi_loss_reg", "two_backwards", "resume", "loggers"}
    | {"use_cuda_flags", "vae", "amp"},
    1: {"main_guard", "batchnorm"},
    4: {"main_guard", "multi_loss_reg"},
}
TABLE = [
    (name, devices)
    for devices in BY_DEFAULT
    for name in NAMES
    if (os.environ.get("DDPIFY_XLA") == "all" or name in BY_DEFAULT[devices])
    and not (devices == 1 and fixtures.load(name).on_device)
]


@pytest.fixture(autouse=True)
def cpu_devices(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("PJRT_DEVICE", "CPU")
    # Compiles five times as fast.
    monkeypatch.setenv("XLA_FLAGS", "--xla_backend_optimization_level=0 --xla_cpu_use_fusion_emitters=false")


@pytest.mark.parametrize(("name", "devices"), TABLE)
def test_conversion_trains_the_same_on_xla_devices(name: str, devices: int) -> None:
    fixture = fixtures.load(name)
    reference = on_devices(fixture, 1) if fixture.on_device else harness.run_original(fixture)
    assert reference.rc == 0, f"the reference fails: {reference.stderr[-2000:]}"
    converted = on_devices(fixture, devices)
    differences = list(compare.equivalent(reference, converted, devices, fixture.xla_tolerance))
    if fixture.divided and devices > 1:
        differences += compare.divided(converted)
    assert not differences, "\n".join([*differences, "--- stderr", converted.stderr[-3000:]])
    assert reference.records or not fixture.records


@functools.cache
def on_devices(fixture: Fixture, devices: int) -> Run:
    """Run the conversion; without the line that says that these are CPU devices."""
    original = {name: path.read_bytes() for name, path in fixtures.files(fixture).items()}
    sources = original | fixtures.converted(fixture, "xla")
    world_size = devices if devices > 1 else 0
    run = harness.run_sources(replace(fixture, compile=True), sources, world_size, limit=LIMIT, start=forked.start)
    lines = run.stderr.splitlines(keepends=True)
    return replace(run, stderr="".join(line for line in lines if not line.startswith("ddpify: XLA on ")))
