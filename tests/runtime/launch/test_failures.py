"""Who failed first, and why: torchrun, spawn and a command, in real processes."""

from __future__ import annotations

import os
import re
import signal
import subprocess
import sys
import time
from pathlib import Path
from typing import Any

import pytest
from ddpify_runtime.launch import failures
from ddpify_runtime.launch.__main__ import main
from ddpify_runtime.launch.spawn import main as spawn

SCRIPT = """
import os, signal, sys, time
import torch
from ddpify_runtime import barrier, get_rank, init_process_group
init_process_group("gloo")
barrier()
if get_rank() == 1:
    {end}
barrier()
time.sleep(60)
"""
STARTS = {
    "torchrun": ("torchrun", "--standalone", "--nproc-per-node", "3", "--", "train.py"),
    "spawn": (sys.executable, "-m", "ddpify_runtime.launch.spawn", "3", "train.py"),
}


def run(folder: Path, end: str, *command: str) -> tuple[int, list[str]]:
    """The status, and the lines of stderr from the one that says who failed on."""
    (folder / "train.py").write_text(SCRIPT.replace("{end}", end))
    words = [sys.executable, "-m", "ddpify_runtime.launch", *command]
    done = subprocess.run(
        words, cwd=folder, env=os.environ | {"OMP_NUM_THREADS": "1"}, capture_output=True, text=True, timeout=120,
        check=False,
    )  # fmt: skip
    # A rank that is killed while it writes its own trace may have begun a line.
    assert re.search(r"^ *ddpify: rank \d", done.stderr, re.MULTILINE), done.stderr
    return done.returncode, done.stderr[done.stderr.index("ddpify: rank") :].splitlines()


NIGHTLY = pytest.mark.nightly


def by_day(start: str) -> list[Any]:
    """All ways to start; the others than this one by night alone."""
    return [pytest.param(each, marks=[] if each == start else NIGHTLY) for each in STARTS]


@pytest.mark.parametrize("start", by_day("torchrun"))
def test_the_rank_that_raised(tmp_path: Path, start: str) -> None:
    """The others raise too, when they lose it."""
    status, lines = run(tmp_path, "raise ValueError('rank 1 is unwell')", *STARTS[start])
    assert status
    assert re.fullmatch(r"ddpify: rank 1 on \S+ failed first:", lines[0])
    assert lines[-1] == "  ValueError: rank 1 is unwell"
    assert any('train.py", line 8' in line for line in lines)
    assert len(lines) <= failures.LINES + 1


@pytest.mark.parametrize("start", by_day("spawn"))
def test_the_rank_that_was_killed(tmp_path: Path, start: str) -> None:
    status, lines = run(tmp_path, "os.kill(os.getpid(), signal.SIGKILL)", *STARTS[start])
    assert status == 128 + signal.SIGKILL
    assert lines[0].startswith("ddpify: rank 1 on ") and lines[1:] == ["  ended by signal 9 (SIGKILL)"]


@pytest.mark.parametrize("start", by_day("torchrun"))
def test_the_status_of_the_script(tmp_path: Path, start: str) -> None:
    status, lines = run(tmp_path, "os._exit(7)", *STARTS[start])
    assert status == 7
    assert lines[0].startswith("ddpify: rank 1 on ") and lines[1:] == ["  exit code 7"]


def test_a_rank_that_lost_another_did_not_fail_first(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    """mpirun does not say which of its processes was killed."""
    monkeypatch.setenv(failures.FOLDER, str(tmp_path))
    failures.record(0, "RuntimeError: [pair.cc:553] Connection closed by peer [127.0.0.1]:31882.")
    found = failures.first(tmp_path)
    assert "rank 0 on" in str(found) and "lost a rank that ended without a word" in str(found)


def test_the_last_attempt_counts(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    monkeypatch.setenv(failures.FOLDER, str(tmp_path))
    for attempt, rank, words in (("0", 0, "first"), ("1", 2, "second"), ("1", 1, "third")):
        monkeypatch.setenv("TORCHELASTIC_RESTART_COUNT", attempt)
        failures.record(rank, words)
    failures.record(2, "not what it said itself", when=0.0)
    (tmp_path / "1-7").write_text('{"rank": 7')  # killed while it wrote
    found = failures.first(tmp_path)
    assert found is not None and (found.rank, found.words) == (2, "second")


@pytest.mark.parametrize("killed", [0, 1])
def test_a_rank_that_was_killed_failed_before_those_that_aborted(
    monkeypatch: pytest.MonkeyPatch, tmp_path: Path, killed: int
) -> None:
    """torch aborts a process that lost another, at times before its traceback is written."""
    monkeypatch.setenv(failures.FOLDER, str(tmp_path))
    aborted = {rank: -signal.SIGABRT for rank in (0, 1) if rank != killed}
    assert failures.record_exits({**aborted, killed: -signal.SIGKILL}) == 128 + signal.SIGKILL
    found = failures.first(tmp_path)
    assert found is not None and found.rank == killed


@pytest.mark.parametrize(
    ("start", "number"),
    [
        pytest.param(start, number, marks=[] if (number == signal.SIGINT) == (start == "spawn") else NIGHTLY)
        for start in STARTS
        for number in (signal.SIGTERM, signal.SIGINT)
    ],
)
def test_signals_reach_every_process(tmp_path: Path, start: str, number: signal.Signals) -> None:
    """The ranks have written their numbers; afterwards none of them is there."""
    (tmp_path / "train.py").write_text(
        SCRIPT.replace("    {end}", "    pass").replace(
            "barrier()\ntime", "open(str(os.getpid()) + '.pid', 'w').close()\nbarrier()\ntime"
        )
    )
    command = [sys.executable, "-m", "ddpify_runtime.launch", *STARTS[start]]
    with subprocess.Popen(command, cwd=tmp_path, stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL) as process:
        while len(list(tmp_path.glob("*.pid"))) < 3 and process.poll() is None:
            time.sleep(0.1)
        process.send_signal(number)
        assert process.wait(60) == 128 + number
    end = time.monotonic() + 30
    ranks = [Path(f"/proc/{file.stem}") for file in tmp_path.glob("*.pid")]
    assert len(ranks) == 3
    while any(rank.exists() for rank in ranks) and time.monotonic() < end:
        time.sleep(0.1)
    assert not any(rank.exists() for rank in ranks)


def test_the_launchers_say_how_they_are_used(capsys: pytest.CaptureFixture[str]) -> None:
    assert main([]) == 2
    for words in ([], ["2"], ["2", "-m"], ["train.py"], ["0", "train.py"]):
        assert spawn(words) == 2
    assert capsys.readouterr().err.count("ddpify: use: python -m ddpify_runtime.launch") == 6
