"""The plain style on two XLA devices, against the same on two gloo processes: the same parameters after every step."""

from __future__ import annotations

import shutil
from pathlib import Path

import pytest

from tests.e2e import fixtures
from tests.e2e.fixtures import Fixture
from tests.xla import runs
from tests.xla.test_retarget import _assert_same_training, _history

# Whose data is drawn from a generator of its own: the devices are threads, which share torch's.
NAMES = ("main_guard",)


def _written(fixture: Fixture, target: str, folder: Path) -> Path:
    """The conversion, which records its steps, in a new folder; its entry script."""
    folder.mkdir()
    shutil.copy(runs.SCRIPTS / "recorded_steps.py", folder)
    original = {name: path.read_bytes() for name, path in fixtures.files(fixture).items()}
    for name, code in (original | fixtures.converted(fixture, target, style="plain")).items():
        (folder / name).parent.mkdir(parents=True, exist_ok=True)
        (folder / name).write_bytes(code)
    entry = folder / fixture.entry
    text = entry.read_text()
    assert "\nimport os\n" in text
    entry.write_text(text.replace("\nimport os\n", "\nimport os\nimport recorded_steps\n", 1))
    return entry


@pytest.mark.parametrize("name", NAMES)
def test_two_devices_train_what_two_processes_train(tmp_path: Path, name: str) -> None:
    fixture = fixtures.load(name)
    eager, xla = (_written(fixture, target, tmp_path / target) for target in ("cpu", "xla"))
    runs.torchrun(eager, 2, *fixture.args)
    runs.xla(xla, 2, *fixture.args)
    steps = len(_history(eager.parent, 0))
    assert steps > 1
    _assert_same_training(eager.parent, xla.parent, steps)
