"""Every fixture, converted for xla, on CPU devices of real torch_xla: held against the original after every step.

The reference is the original in one process on the CPU; for a fixture that draws numbers on its device, or saves the
device's name, it is the conversion on one XLA device.
"""

from __future__ import annotations

import functools
from collections.abc import Mapping, Sequence
from dataclasses import replace
from pathlib import Path

import pytest

from ddpify.verify import compare
from ddpify.verify.runs import Run
from tests import forked
from tests.e2e import fixtures, harness
from tests.e2e.fixtures import Fixture
from tests.turns import turn
from tests.xla.runs import FLAGS, INTERPRETER

# XLA fuses operations, and so rounds otherwise than a CPU kernel by kernel.
TOLERANCE = 1e-5
BFLOAT16 = 2**-8  # how much a number changes when it is rounded to bfloat16
LIMIT = 400.0  # seconds; it takes 5 to 30

NAMES = [name for name in fixtures.names() if not fixtures.load(name).refused and not fixtures.load(name).not_on_xla]
# What runs on two devices runs on one, too, but for what is done for two: a few say so in CI, all of them by night.
ALONE = {"amp_old", "gan", "main_guard", "resume"}
# What differs most on two XLA devices; of the others a sixth in CI, by turns, and all of them by night.
OFTEN = {"amp", "batchnorm", "dropout", "main_guard", "ragged", "resume"}
# A quarter of a minute each: by night.
SLOW = {
    *("adversarial_autoencoder", "batch_decisions", "char_lm", "checkpointed", "contrastive", "gan", "loss_in_forward"),
    *("three_modules", "tied_weights", "unused_params", "word_lm"),
}


def by_day(name: str, devices: int) -> bool:
    """Whether a fixture runs on so many devices in CI."""
    usual = name in OFTEN or (name not in SLOW and turn(name, 6) == 0)
    return (devices == 2 and usual) or (devices == 1 and name in ALONE)


TABLE = [
    pytest.param(name, devices, marks=() if by_day(name, devices) else pytest.mark.nightly)
    for name in NAMES
    for devices in (1, 2, 4)
    if not (devices == 1 and fixtures.load(name).on_device)  # its own reference
]


@pytest.mark.parametrize(("name", "devices"), TABLE)
def test_conversion_trains_the_same_on_xla_devices(name: str, devices: int) -> None:
    fixture = fixtures.load(name)
    reference = on_devices(fixture, 1) if fixture.on_device else harness.run_original(fixture)
    assert reference.rc == 0, f"the reference fails: {reference.stderr[-2000:]}"
    converted = on_devices(fixture, devices)
    differences = list(compare.equivalent(reference, converted, devices, max(fixture.tolerance, TOLERANCE)))
    # On XLA a batch is divided where all shares are of one size (X4); a run that has none says so.
    if fixture.divided and devices > 1 and f"does not divide by {devices}, as devices need" not in converted.stderr:
        differences += compare.divided(converted)
    assert not differences, "\n".join([*differences, "--- stderr", converted.stderr[-3000:]])
    assert reference.records or not fixture.records


def test_in_bfloat16_a_gradient_differs_by_its_rounding() -> None:
    """Later ones differ more, as they would after any rounding; the table runs this fixture without autocast."""
    fixture = replace(fixtures.load("amp_old"), pretend_on_xla="")
    one, two = (on_devices(fixture, devices, steps=1) for devices in (1, 2))
    assert (one.rc, two.rc) == (0, 0), two.stderr
    [(gradient, _)] = compare.distances(one.steps(), two.steps())
    assert TOLERANCE < gradient <= BFLOAT16


@pytest.mark.parametrize(
    "name", ["batchnorm", "dropout", "multi_loss_reg", pytest.param("loss_in_forward", marks=pytest.mark.nightly)]
)
def test_every_rank_runs_the_same_graphs(tmp_path: Path, name: str) -> None:
    """X6: the text of all graphs, in their order, with the lines of Python that ran them."""
    done = on_devices(fixtures.load(name), 2, steps=6, graphs=tmp_path)
    assert done.rc == 0, done.stderr
    first, second = (path.read_text() for path in sorted(tmp_path.iterdir()))
    assert first == second
    assert first.count("[ScheduleSyncTensorsGraph]") > 20


@pytest.mark.parametrize("time", [1, *(pytest.param(time, marks=pytest.mark.nightly) for time in range(2, 11))])
@pytest.mark.parametrize("name", ["main_guard", pytest.param("batchnorm", marks=pytest.mark.nightly)])
def test_runs_neither_hang_nor_crash_when_repeated(name: str, time: int) -> None:
    """Not from the cache: two devices train and end as they did before, to the last bit."""
    fixture = fixtures.load(name)
    again = on_devices.__wrapped__(fixture, 2)
    assert again.rc == 0, again.stderr
    assert list(compare.equivalent(on_devices(fixture, 2), again, 2, 0.0)) == []


@functools.cache
def on_devices(
    fixture: Fixture, devices: int, steps: int = 0, graphs: Path | None = None, xla_reduce: str = "ddp"
) -> Run:
    """Run the conversion, without the line that says that these are CPU devices.

    steps: after how many steps it ends; 0: at its end. graphs: a folder for the text of the graphs, a file for each
    rank. xla_reduce: as the option --xla-reduce.
    """

    def start(
        words: Sequence[str], world_size: int, folder: Path, environment: Mapping[str, str], limit: float
    ) -> tuple[int, str, str]:
        settings = {"PJRT_DEVICE": "CPU", "XLA_FLAGS": FLAGS, "DDPIFY_STEPS": str(steps)}
        settings["DDPIFY_PRETEND"] = fixture.pretend_on_xla
        settings |= {"XLA_SAVE_TENSORS_FILE": str(graphs / "<rank>")} if graphs else {}
        return forked.start(words, world_size, folder, {**environment, **settings}, limit, INTERPRETER)

    original = {name: path.read_bytes() for name, path in fixtures.files(fixture).items()}
    sources = original | fixtures.converted(fixture, "xla", xla_reduce)
    run = harness.run_sources(fixture, sources, devices if devices > 1 else 0, limit=LIMIT, start=start)
    lines = run.stderr.splitlines(keepends=True)
    return replace(run, stderr="".join(line for line in lines if not line.startswith("ddpify: XLA on ")))
