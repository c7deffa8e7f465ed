"""Starts a run, and ends it with all that it started."""

from __future__ import annotations

import os
import select
import subprocess
import sys
from pathlib import Path

import pytest

from ddpify.verify import processes
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


def test_a_run_ends_at_its_limit(tmp_path: Path) -> None:
    status, _, _ = execute([sys.executable, "-c", "import time; time.sleep(100)"], tmp_path, dict(os.environ), 0.5)
    assert status == TIMED_OUT


def test_children_end_with_it() -> None:
    """Those in a session of their own, too; the pipe ends when all are gone that write to it."""
    child = "import time\nprint('begun', flush=True)\ntime.sleep(100)"
    code = f"import subprocess, sys\nsubprocess.run([sys.executable, '-c', {child!r}], start_new_session=True)"
    words = [sys.executable, "-c", code]
    with subprocess.Popen(words, stdout=subprocess.PIPE, start_new_session=True) as process:
        assert process.stdout and process.stdout.readline() == b"begun\n"
        processes._end(process)
        assert select.select([process.stdout], [], [], 60)[0] and process.stdout.read() == b""
