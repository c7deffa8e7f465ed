"""The command lines that start a script."""

from __future__ import annotations

import sys
from pathlib import Path

import pytest

from ddpify.files import BadInput
from ddpify.launchers import INSTALL, LAUNCHERS, Job, horovodrun, mpich, openmpi, python, require, spawn, srun, torchrun

JOB = Job(("train.py", "--epochs", "2"), processes=2)
CLUSTER = Job(("train.py",), processes=4, machines=(2, 2), hosts=(("one", 4), ("two", 4)))
SCRIPT = [sys.executable, "train.py", "--epochs", "2"]


def test_processes_on_all_machines() -> None:
    assert (JOB.total, CLUSTER.total) == (2, 8)
    assert not JOB.is_elastic and Job(("a.py",), machines=(1, 2)).is_elastic and Job(("a.py",), restarts=1).is_elastic


def test_the_words_of_the_script_stand_last() -> None:
    assert torchrun(JOB)[-4:] == ["--", "train.py", "--epochs", "2"]
    assert spawn(JOB) == [sys.executable, "-m", "ddpify_runtime.launch.spawn", "2", "train.py", "--epochs", "2"]
    assert python(JOB) == SCRIPT
    assert horovodrun(JOB) == ["horovodrun", "-np", "2", *SCRIPT]
    assert horovodrun(CLUSTER)[:5] == ["horovodrun", "-np", "8", "-H", "one:4,two:4"]


def test_slurm_ends_all_when_one_has_failed(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("SLURM_CPUS_PER_TASK", "3")
    words = srun(CLUSTER)
    assert words[:2] == ["srun", "--kill-on-bad-exit=1"] and "--ntasks" in words and "8" in words
    assert words[words.index("--nodelist") + 1] == "one,two" and words[words.index("--cpus-per-task") + 1] == "3"


def test_three_makers_call_theirs_mpirun(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    mpirun = tmp_path / "mpirun"
    mpirun.write_text("#!/bin/sh\necho 'HYDRA build details'\n")
    mpirun.chmod(0o755)
    monkeypatch.setenv("PATH", str(tmp_path))
    assert mpich(JOB) == ["mpirun", "-n", "2", *SCRIPT]
    with pytest.raises(BadInput, match="no mpirun of openmpi here"):
        openmpi(JOB)


def test_what_is_not_here_is_said_with_a_remedy() -> None:
    with pytest.raises(BadInput, match="no horovodrun-that-is-not-there here"):
        require(["horovodrun-that-is-not-there"], "horovodrun")
    require([sys.executable], "srun")
    assert set(INSTALL) <= set(LAUNCHERS)
