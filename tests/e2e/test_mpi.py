"""The plain style for mpirun: the ranks are those that Open MPI, MPICH and Intel MPI give, where torch has no MPI."""

from __future__ import annotations

import os
import subprocess
import sys
from collections.abc import Callable
from pathlib import Path

import pytest

from tests.e2e import fixtures
from tests.forked import free_port

NAME = "use_cuda_flags"
RUNNER = Path(__file__).parents[1] / "torch_script.py"


def torchrun(rank: int) -> dict[str, str]:
    return {"RANK": str(rank), "WORLD_SIZE": "2", "MASTER_ADDR": "127.0.0.1"}


def open_mpi(rank: int) -> dict[str, str]:
    return {"OMPI_COMM_WORLD_RANK": str(rank), "OMPI_COMM_WORLD_SIZE": "2", "OMPI_COMM_WORLD_LOCAL_RANK": str(rank)}


def mpich(rank: int) -> dict[str, str]:
    return {"PMI_RANK": str(rank), "PMI_SIZE": "2", "MPI_LOCALRANKID": str(rank)}


@pytest.mark.nightly
@pytest.mark.parametrize("launcher", [open_mpi, mpich])
def test_two_processes_of_mpirun_train_what_two_of_torchrun_do(
    launcher: Callable[[int], dict[str, str]], tmp_path: Path
) -> None:
    found = printed("mpi", launcher, tmp_path)
    assert found == printed("cpu", torchrun, tmp_path) and found.strip()


def printed(target: str, launcher: Callable[[int], dict[str, str]], folder: Path) -> str:
    script = fixtures.expected_path(fixtures.load(NAME), f"plain.{target}", "")
    common = os.environ | {"OMP_NUM_THREADS": "1", "MASTER_PORT": free_port()}
    processes = [
        subprocess.Popen(
            [sys.executable, str(RUNNER), str(script)],
            cwd=folder,
            env=common | launcher(rank),
            stdout=subprocess.PIPE,
            text=True,
        )
        for rank in range(2)
    ]
    said = [process.communicate(timeout=240)[0] for process in processes]
    assert [process.returncode for process in processes] == [0, 0] and said[1] == ""
    return said[0]
