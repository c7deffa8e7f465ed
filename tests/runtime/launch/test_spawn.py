"""`python -m ddpify_runtime.launch.spawn N SCRIPT ARGS`."""

from __future__ import annotations

import signal
import subprocess
import sys
import time
from pathlib import Path

import pytest
from ddpify_runtime.launch import spawn


@pytest.mark.parametrize("words", [[], ["2"], ["two", "train.py"], ["0", "train.py"], ["2", "-m"]])
def test_a_command_that_names_no_script(words: list[str], capsys: pytest.CaptureFixture[str]) -> None:
    assert spawn.main(words) == 2
    assert "use: python -m ddpify_runtime.launch.spawn N [-m] SCRIPT ARGS" in capsys.readouterr().err


def test_a_signal_is_the_status_whatever_it_made_of_the_ranks(tmp_path: Path) -> None:
    """A rank that still waits for another in a collective is aborted by torch when that one is gone."""
    (tmp_path / "train.py").write_text(
        "import os, signal, time\n"
        "if os.environ['RANK'] == '0':\n"
        "    signal.signal(signal.SIGINT, lambda number, frame: os.abort())\n"
        "open(os.environ['RANK'] + '.ready', 'w').close()\n"
        "time.sleep(60)\n"
    )
    command = [sys.executable, "-m", "ddpify_runtime.launch.spawn", "2", "train.py"]
    with subprocess.Popen(command, cwd=tmp_path, stderr=subprocess.DEVNULL) as process:
        while len(list(tmp_path.glob("*.ready"))) < 2 and process.poll() is None:
            time.sleep(0.1)
        process.send_signal(signal.SIGINT)
        assert process.wait(60) == 128 + signal.SIGINT
