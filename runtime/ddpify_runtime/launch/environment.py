"""What the launcher says: which process this is, of how many. Reads the environment only; imports no torch."""

from __future__ import annotations

import os
import sys
from collections.abc import Mapping
from dataclasses import dataclass

_FOLDER = os.getcwd()


@dataclass(frozen=True)
class Environment:
    """The place of this process: `rank` of `world_size`, `local_rank` on its machine; all zero-based counts."""

    rank: int = 0
    world_size: int = 1
    local_rank: int = 0


def read(environ: Mapping[str, str] = os.environ) -> Environment:
    """The environment that torchrun sets (RANK, WORLD_SIZE, LOCAL_RANK); one process when there is none.

    Raises:
        RuntimeError: a variable is there but is not a number, or RANK lies outside WORLD_SIZE, or the processes were
            started by srun or mpirun, which set other variables.
    """
    if "RANK" not in environ or "WORLD_SIZE" not in environ:
        for variable in ("SLURM_STEP_NUM_TASKS", "OMPI_COMM_WORLD_SIZE", "PMI_SIZE"):
            if environ.get(variable, "1") != "1":
                raise RuntimeError(
                    f"{variable}={environ[variable]}, but RANK and WORLD_SIZE are not set: each of these processes "
                    "would train alone; start with torchrun (srun can start one torchrun for each node)"
                )
        return Environment()
    try:
        place = Environment(
            int(environ["RANK"]), int(environ["WORLD_SIZE"]), int(environ.get("LOCAL_RANK", environ["RANK"]))
        )
    except ValueError as error:
        raise RuntimeError(f"RANK, WORLD_SIZE and LOCAL_RANK must be numbers: {error}; start with torchrun") from None
    if not 0 <= place.rank < place.world_size:
        raise RuntimeError(f"RANK={place.rank} is not below WORLD_SIZE={place.world_size}; start with torchrun")
    return place


def draws_original(environ: Mapping[str, str] = os.environ) -> bool:
    """Whether every rank draws the random numbers of one process, at its price: DDPIFY_RANDOM=original.

    `ddpify verify` asks for it, so that every step can be held against the original. Without it a rank draws for its
    own samples only, while they are loaded and in a divided forward (docs/contract.md).

    Raises:
        RuntimeError: DDPIFY_RANDOM has another value.
    """
    value = environ.get("DDPIFY_RANDOM", "")
    if value not in ("", "original"):
        raise RuntimeError(f"DDPIFY_RANDOM={value!r} is not known: leave it out, or set it to 'original'")
    return value == "original"


def start_processes(environ: Mapping[str, str] = os.environ) -> None:
    """Become torchrun for this same command line when DDPIFY_NPROC asks for processes and no launcher made any.

    `DDPIFY_NPROC=4 python train.py` is `torchrun --standalone --nproc-per-node 4 -- train.py`. Does not return then.
    The script runs from its first line in each process, so nothing has to be importable or picklable (HAZARDS P1, P2).
    """
    processes = environ.get("DDPIFY_NPROC", "")
    if not processes or "RANK" in environ:
        return
    if not processes.isdigit() or not int(processes):
        raise RuntimeError(f"DDPIFY_NPROC={processes!r} is not a number of processes")
    if int(processes) == 1:
        return
    os.chdir(_FOLDER)  # where a script that has gone elsewhere since is found, and goes elsewhere again
    launcher = [sys.executable, "-m", "ddpify_runtime.launch", processes]
    sys.stdout.flush()
    sys.stderr.flush()
    os.execv(sys.executable, launcher + _command_line())


def _command_line() -> list[str]:
    spec = getattr(sys.modules["__main__"], "__spec__", None)
    if spec is not None:  # started as `python -m package.train`
        name = spec.name.removesuffix(".__main__")
        return ["-m", name, *sys.argv[1:]]
    script, *arguments = sys.argv
    if not os.path.exists(script):  # it went elsewhere before it imported this package
        script = getattr(sys.modules["__main__"], "__file__", script)
    return [script, *arguments]
