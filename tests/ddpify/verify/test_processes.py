"""Starts a run, and ends it with all that it started."""

from __future__ import annotations

import os
import sys
import time
from pathlib import Path

import pytest

from ddpify.verify.processes import TIMED_OUT, environment, execute


def test_no_launchers_variables_reach_a_run(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("RANK", "3")
    monkeypatch.setenv("MINE", "kept")
    found = environment(tmp_path, ["here"])
    assert "RANK" not in found and found["MINE"] == "kept"
    assert "here" in found["PYTHONPATH"].split(os.pathsep)


def test_what_a_command_says_and_ends_with(tmp_path: Path) -> None:
    code = "import sys; print('out'); print('err', file=sys.stderr); sys.exit(3)"
    assert execute([sys.executable, "-c", code], tmp_path, dict(os.environ), 60) == (3, "out\n", "err\n")


def test_children_end_with_it(tmp_path: Path) -> None:
    child = f"import time\ntime.sleep(2)\nopen({str(tmp_path / 'late')!r}, 'w')"
    code = f"import subprocess, sys, time\nsubprocess.Popen([sys.executable, '-c', {child!r}])\ntime.sleep(60)"
    status, _, _ = execute([sys.executable, "-c", code], tmp_path, dict(os.environ), 1)
    assert status == TIMED_OUT
    time.sleep(2.5)
    assert not (tmp_path / "late").exists()
