"""Legacy tensor types on XLA devices: scripts that make their tensors by them train what they train on a CPU."""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path

import pytest

from tests.xla import runs
from tests.xla.test_processes import printed, train


def test_a_gan_trains_the_same_on_one_and_two_devices(tmp_path: Path) -> None:
    script = runs.SCRIPTS / "tensor_types.py"
    converted = runs.convert(script, tmp_path)
    environment = {"OMP_NUM_THREADS": "1", "CUDA_VISIBLE_DEVICES": ""}
    original = subprocess.run([sys.executable, script], env=environment, capture_output=True, text=True, check=True)
    expected = [float(line) for line in original.stdout.split()]
    assert len(expected) == 48
    for devices in (1, 2):
        rows = printed(train(tmp_path, str(converted), devices=devices))
        assert [float(value) for (value,) in rows] == pytest.approx(expected, rel=1e-5), devices


def test_every_call_gives_what_it_gives_on_the_host(tmp_path: Path) -> None:
    assert len(printed(train(tmp_path, "tensor_type_calls.py"))) == 2
