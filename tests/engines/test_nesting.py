"""Launchers inside one another, for real: whose variables count, where those of several are there."""

from __future__ import annotations

import os
import subprocess
import sys
import time
from collections.abc import Mapping, Sequence
from pathlib import Path

import pytest

from tests.engines.hosts import Host

LIMIT = 600.0  # seconds until a job has to have ended

PLACE = """\
import torch, torch.distributed as dist
import ddpify_runtime
ddpify_runtime.init_process_group("gloo")
found = torch.ones(1)
if dist.is_initialized():
    dist.all_reduce(found)
print("processes", int(found), flush=True)
ddpify_runtime.destroy_process_group()
"""
TORCHRUN = f"{sys.executable} -m torch.distributed.run"
AGENTS = "--nnodes 2 --nproc-per-node 1 --rdzv-backend c10d --rdzv-endpoint {first}:29888"

# In a batch script of two tasks on two nodes: what is started, and how many processes train together.
INSIDE = {
    f"{sys.executable} place.py": "1",  # the batch step is one process, whatever SLURM_NTASKS says
    f"srun --mpi=pmi2 {sys.executable} place.py": "2",  # which sets PMI_RANK and PMI_SIZE
    f"srun {TORCHRUN} {AGENTS} place.py": "2",
    f"mpirun.openmpi --allow-run-as-root -np 2 {sys.executable} place.py": "2",  # starts its daemons by srun
    f"mpirun.mpich -n 2 {sys.executable} place.py": "2",
    f"{sys.executable} -m ddpify run place.py": "2",  # as srun
}
INSIDE_BY_NIGHT = {
    f"srun {sys.executable} place.py": "2",
    f"srun -n 1 -N 1 {sys.executable} place.py": "1",
    f"{TORCHRUN} --standalone --nproc-per-node 2 place.py": "2",
    f"srun -N 1 -n 1 {TORCHRUN} --standalone --nproc-per-node 3 place.py": "3",
    f"mpirun.openmpi --allow-run-as-root -np 1 {TORCHRUN} --standalone --nproc-per-node 2 place.py": "2",
    f"DDPIFY_NPROC=2 {sys.executable} place.py": "2",
}


@pytest.mark.parametrize("inside", [INSIDE, pytest.param(INSIDE_BY_NIGHT, marks=pytest.mark.nightly)])
def test_in_a_batch_job(
    inside: Mapping[str, str], hosts: tuple[Host, Host], cluster: dict[str, str], tmp_path: Path
) -> None:
    lines = [f"echo; echo '# {number}'; {command}" for number, command in enumerate(inside)]
    said = submitted(hosts, cluster, tmp_path, ["#!/bin/bash", "#SBATCH --nodes=2 --ntasks=2", *lines, "echo '# end'"])
    found = {}
    for part in said.split("# ")[1:-1]:
        number, *rest = part.splitlines()
        found[number] = sorted({line for line in rest if line.startswith("processes")})
    assert found == {str(number): [f"processes {count}"] for number, count in enumerate(inside.values())}, said


def test_in_the_shell_of_an_allocation(hosts: tuple[Host, Host], cluster: dict[str, str], tmp_path: Path) -> None:
    """SLURM_NTASKS is 2 there, and Python is one process."""
    (tmp_path / "place.py").write_text(PLACE)
    command = hosts[0].command(["salloc", "--ntasks=2", sys.executable, "place.py"])
    done = subprocess.run(
        command, cwd=tmp_path, env=os.environ | cluster, capture_output=True, text=True, timeout=LIMIT, check=False
    )
    assert (done.returncode, done.stdout) == (0, "processes 1\n"), done.stderr


def test_the_batch_script_that_is_written(hosts: tuple[Host, Host], cluster: dict[str, str], tmp_path: Path) -> None:
    words = ["run", "place.py", "--emit", "sbatch", "--nnodes", "2", "-n", "1"]
    (tmp_path / "place.py").write_text(PLACE)
    command = [sys.executable, "-m", "ddpify", *words]
    text = subprocess.run(command, cwd=tmp_path, capture_output=True, text=True, timeout=LIMIT, check=True).stdout
    assert "processes 2\n" in submitted(hosts, cluster, tmp_path, [*text.splitlines(), "echo '# end'"])


def submitted(hosts: tuple[Host, Host], cluster: dict[str, str], folder: Path, lines: Sequence[str]) -> str:
    """What a batch script prints that ends with `# end`."""
    (folder / "place.py").write_text(PLACE)
    (folder / "job").write_text("\n".join([*lines, ""]).replace("{first}", hosts[0].name))
    path = f"{Path(sys.executable).parent}:{os.environ['PATH']}"
    given = os.environ | cluster | {"OMP_NUM_THREADS": "1", "PATH": path}
    output = folder / "output"
    command = hosts[0].command(["sbatch", "--parsable", f"--output={output}", "job"])
    subprocess.run(command, cwd=folder, env=given, check=True, timeout=LIMIT, capture_output=True)
    end = time.monotonic() + LIMIT
    while time.monotonic() < end:
        if output.exists() and output.read_text().endswith("# end\n"):
            return output.read_text()
        time.sleep(0.2)
    pytest.fail(f"the job did not end: {output.read_text() if output.exists() else 'it did not begin'}")
