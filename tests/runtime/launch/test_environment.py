"""Which process this is, by what the launchers have said: environments as the real ones set them (tests/engines)."""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path

import pytest
from ddpify_runtime.launch import launchers
from ddpify_runtime.launch.environment import Environment, join, read
from ddpify_runtime.launch.launchers import Launcher

TORCHRUN = {"RANK": "3", "WORLD_SIZE": "4", "LOCAL_RANK": "1", "TORCHELASTIC_RUN_ID": "x"}
MASTER = {"MASTER_ADDR": "10.0.0.1", "MASTER_PORT": "29400"}
HOROVOD = {"HOROVOD_RANK": "1", "HOROVOD_SIZE": "2", "HOROVOD_LOCAL_RANK": "0", "HOROVOD_LOCAL_SIZE": "1"}
OPEN_MPI = {"OMPI_COMM_WORLD_RANK": "2", "OMPI_COMM_WORLD_SIZE": "3", "OMPI_COMM_WORLD_LOCAL_RANK": "1"}
MPICH = {"PMI_RANK": "1", "PMI_SIZE": "2", "MPI_LOCALRANKID": "0", "MPI_LOCALNRANKS": "1"}
ALLOCATION = {"SLURM_JOB_ID": "7", "SLURM_NTASKS": "8", "SLURM_NNODES": "2", "SLURM_JOB_NODELIST": "n[1-2]"}
BATCH = {**ALLOCATION, "SLURM_PROCID": "0", "SLURM_LOCALID": "0", "SLURM_NODEID": "0"}
STEP = {
    **ALLOCATION, "SLURM_PROCID": "5", "SLURM_LOCALID": "1", "SLURM_NODEID": "1", "SLURM_STEP_ID": "3",
    "SLURM_STEP_NUM_TASKS": "8", "SLURM_STEP_NUM_NODES": "2", "SLURM_STEP_NODELIST": "node[01-03,7]",
}  # fmt: skip
INTERACTIVE = {**STEP, "SLURM_PROCID": "0", "SLURM_LOCALID": "0", "SLURM_STEP_NUM_TASKS": "1"}  # srun --pty bash
PJRT = {"PJRT_LOCAL_PROCESS_RANK": "3", "PJRT_LOCAL_PROCESS_COUNT": "4"}
BY_HAND = {"RANK": "1", "WORLD_SIZE": "16"}


@pytest.mark.parametrize(
    ("environ", "place"),
    [
        ({}, (0, 1, 0)),
        (TORCHRUN, (3, 4, 1)),
        (BY_HAND, (1, 16, 1)),
        (HOROVOD, (1, 2, 0)),
        (OPEN_MPI, (2, 3, 1)),
        (MPICH, (1, 2, 0)),
        (STEP, (5, 8, 1)),
        (PJRT, (3, 4, 3)),
        # One process, in an allocation of many tasks.
        (ALLOCATION, (0, 1, 0)),
        (BATCH, (0, 1, 0)),
        (INTERACTIVE, (0, 1, 0)),
        # The innermost of several.
        ({**BATCH, **TORCHRUN}, (3, 4, 1)),
        ({**STEP, **TORCHRUN}, (3, 4, 1)),
        ({**STEP, **TORCHRUN, "RANK": "0", "WORLD_SIZE": "1", "LOCAL_RANK": "0"}, (0, 1, 0)),
        ({**OPEN_MPI, **TORCHRUN}, (3, 4, 1)),
        ({**STEP, **OPEN_MPI}, (2, 3, 1)),
        ({**STEP, **MPICH}, (1, 2, 0)),
        ({**OPEN_MPI, **HOROVOD}, (1, 2, 0)),
        ({**INTERACTIVE, **OPEN_MPI}, (2, 3, 1)),
        ({**STEP, "PMI_RANK": "5", "PMI_SIZE": "8"}, (5, 8, 1)),  # srun --mpi=pmi2
        ({**STEP, **BY_HAND}, (1, 16, 1)),  # a task has started two processes of its own
        ({**STEP, "RANK": "5", "WORLD_SIZE": "8"}, (5, 8, 5)),  # a wrapper has said in torch's words what Slurm says
    ],
)
def test_the_place_of_a_process(environ: dict[str, str], place: tuple[int, int, int]) -> None:
    assert read(environ) == Environment(*place)


@pytest.mark.parametrize(
    ("environ", "message"),
    [
        ({"RANK": "x", "WORLD_SIZE": "2"}, "torchrun: RANK, WORLD_SIZE, LOCAL_RANK must be numbers"),
        ({"RANK": "2", "WORLD_SIZE": "2"}, "RANK=2 is not below WORLD_SIZE=2"),
        ({**STEP, "SLURM_PROCID": "8"}, "SLURM_PROCID=8 is not below SLURM_STEP_NUM_TASKS=8"),
        # Exported in a shell long ago: each of the tasks would train alone, or be rank 0.
        ({**STEP, "RANK": "0", "WORLD_SIZE": "1"}, "Slurm says SLURM_PROCID=5 of SLURM_STEP_NUM_TASKS=8: unset RANK"),
        ({**MPICH, "RANK": "0", "WORLD_SIZE": "2"}, "RANK=0 of WORLD_SIZE=2, but MPICH says PMI_RANK=1 of PMI_SIZE=2"),
    ],
)
def test_what_is_no_place(environ: dict[str, str], message: str) -> None:
    with pytest.raises(RuntimeError, match=message):
        read(environ)


def test_torch_reads_what_was_found() -> None:
    environ = {**STEP}
    join(environ)
    assert environ["MASTER_ADDR"] == "node01"
    assert 20000 <= int(environ["MASTER_PORT"]) < 32000
    assert (environ["RANK"], environ["WORLD_SIZE"], environ["LOCAL_RANK"]) == ("5", "8", "1")
    assert read(environ) == Environment(5, 8, 1)


def test_an_address_that_was_given_counts() -> None:
    environ = {**STEP, "MASTER_ADDR": "login"}
    join(environ)
    assert environ["MASTER_ADDR"] == "login"
    environ = {**MPICH, **MASTER}  # mpirun is not asked
    assert join(environ) == Environment(1, 2, 0)


def test_alone_nothing_is_written() -> None:
    for environ in ({}, {**BATCH}, {**INTERACTIVE}):
        before = dict(environ)
        assert join(environ) == Environment()
        assert environ == before


@pytest.mark.parametrize(
    ("environ", "line"),
    [
        (TORCHRUN, "RANK and WORLD_SIZE are set, but not MASTER_ADDR and MASTER_PORT: start with torchrun"),
        (OPEN_MPI, "the host of rank 0 is not known: mpirun -x MASTER_ADDR=HOST, the first host of -H"),
        (MPICH, "mpirun cannot be asked where rank 0 is: pass MASTER_ADDR and MASTER_PORT"),
        (
            {**STEP, "SLURM_PROCID": "0"},
            "Slurm put rank 0 on another node than the first: pass MASTER_ADDR, the host of rank 0",
        ),
    ],
)
def test_what_to_pass_is_one_line(environ: dict[str, str], line: str, capsys: pytest.CaptureFixture[str]) -> None:
    with pytest.raises(SystemExit) as ended:
        join({**environ})
    assert ended.value.code == 2
    said = capsys.readouterr().err
    assert said.startswith(f"ddpify: {line}") and said.count("\n") == 1


def test_a_launcher_is_one_row(monkeypatch: pytest.MonkeyPatch) -> None:
    row = Launcher("flux", "FLUX_RANK", "FLUX_SIZE", "FLUX_LOCAL", lambda environ, rank: ("head", 4000 + rank))
    monkeypatch.setattr(launchers, "LAUNCHERS", launchers.LAUNCHERS)
    launchers.LAUNCHERS.append(row)
    try:
        environ = {"FLUX_RANK": "1", "FLUX_SIZE": "2", "FLUX_LOCAL": "0"}
        assert join(environ) == Environment(1, 2, 0)
        assert (environ["MASTER_ADDR"], environ["MASTER_PORT"], environ["WORLD_SIZE"]) == ("head", "4001", "2")
    finally:
        launchers.LAUNCHERS.remove(row)


def test_reading_the_environment_imports_no_torch() -> None:
    names = ("environment", "launchers", "meeting", "failures", "start")
    folder = Path(launchers.__file__).parent
    code = f"""
import importlib, sys, types
package = types.ModuleType("launch"); package.__path__ = [{str(folder)!r}]; sys.modules["launch"] = package
for name in {names}: importlib.import_module("launch." + name)
assert "torch" not in sys.modules
"""
    subprocess.run([sys.executable, "-c", code], check=True, timeout=60)
