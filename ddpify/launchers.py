"""The command lines that start a script: one function for each launcher. A new one is a function more."""

from __future__ import annotations

import os
import shutil
import socket
import subprocess
import sys
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass

from ddpify.files import BadInput

PORT = 29400  # where torchrun's agents meet if nobody says otherwise
# What an elastic run notices a lost machine by, in seconds: of torch's own values it would be 46. Two attempts are not
# enough: a heartbeat may skip one, and then two groups train without knowing of each other.
HEARTBEAT = "last_call_timeout=1,keep_alive_interval=1,keep_alive_max_attempt=3"
RESTARTS = 3  # the agents of two machines each count the loss of one process


@dataclass(frozen=True)
class Job:
    """What to start.

    script: what stands after `python`. processes: on each machine; 0 for those of the allocation.
    machines: least and most. hosts: their names, each with the number of its processes; none for this machine, or
    wherever Slurm puts them. restarts: how often to start again after a failure. extra: further words for the launcher.
    """

    script: tuple[str, ...]
    processes: int = 1
    machines: tuple[int, int] = (1, 1)
    hosts: tuple[tuple[str, int], ...] = ()
    restarts: int = 0
    extra: tuple[str, ...] = ()

    @property
    def total(self) -> int:
        """The number of all processes."""
        return sum(count for _, count in self.hosts) or self.processes * self.machines[1]

    @property
    def is_elastic(self) -> bool:
        """Whether processes may be lost, or machines come and go."""
        return self.restarts > 0 or self.machines[0] != self.machines[1]


def torchrun(job: Job) -> list[str]:
    """One agent for each machine, which is started there; they meet at the first host."""
    least, most = job.machines
    words = ["torchrun", *["--standalone"] * (most == 1), "--nproc-per-node", str(job.processes)]
    if most > 1:
        words += ["--nnodes", str(most) if least == most else f"{least}:{most}"]
        words += ["--rdzv-backend", "c10d", "--rdzv-endpoint", f"{job.hosts[0][0]}:{PORT}", "--rdzv-id", "ddpify"]
    settings = [HEARTBEAT] if job.is_elastic else []
    names = [name for name, _ in job.hosts]
    if len(names) > 1 and (here := socket.gethostname()) in names:
        # By itself an agent finds out by its host's name, which many machines know as 127.0.0.1: then none is the host.
        settings.append(f"is_host={int(here == names[0])}")
        words += ["--local-addr", here]
    if job.is_elastic:
        words += ["--max-restarts", str(job.restarts or RESTARTS)]
    if settings:
        words += ["--rdzv-conf", ",".join(settings)]
    module, script = (job.script[:1], job.script[1:]) if job.script[0] == "-m" else ((), job.script)
    return [*words, *job.extra, *module, "--", *script]  # else it takes the script's `--s` for an option of its own


def spawn(job: Job) -> list[str]:
    """torch.multiprocessing.spawn on this machine."""
    return [sys.executable, "-m", "ddpify_runtime.launch.spawn", str(job.processes), *job.script]


def srun(job: Job) -> list[str]:
    """A step of Slurm; with all tasks of the allocation if no number of processes is given."""
    words = ["srun", "--kill-on-bad-exit=1", "--quit-on-interrupt"]
    if job.hosts:
        words += ["--nodelist", ",".join(name for name, _ in job.hosts)]
    if job.processes:
        words += ["--nodes", str(job.machines[1]), "--ntasks", str(job.total)]
    if "SLURM_CPUS_PER_TASK" in os.environ:  # from 22.05 on a step does not take it from the job
        words += ["--cpus-per-task", os.environ["SLURM_CPUS_PER_TASK"]]
    return [*words, *job.extra, sys.executable, *job.script]


def openmpi(job: Job) -> list[str]:
    """mpirun of Open MPI. It would bind each process to one core, and give it no environment on other hosts."""
    words = [_mpirun("openmpi", ("mpirun.openmpi", "mpirun"), ("Open MPI", "OpenRTE")), "-np", str(job.total)]
    words += ["--bind-to", "none"]
    words += ["--allow-run-as-root"] if os.geteuid() == 0 else []
    if job.hosts:
        words += ["-H", ",".join(f"{name}:{count}" for name, count in job.hosts)]
        passed = [name for name in os.environ if name == "PYTHONPATH" or name.startswith(("DDPIFY_", "MASTER_"))]
        for name in sorted({"OMP_NUM_THREADS", *passed}):
            words += ["-x", name]
    else:
        words += ["--oversubscribe"]
    return [*words, *job.extra, sys.executable, *job.script]


def mpich(job: Job) -> list[str]:
    """mpirun of MPICH."""
    return _hydra(job, _mpirun("mpich", ("mpirun.mpich", "mpirun"), ("HYDRA",)))


def intelmpi(job: Job) -> list[str]:
    """mpirun of Intel MPI."""
    return _hydra(job, _mpirun("intelmpi", ("mpirun",), ("Intel(R) MPI",)))


def _hydra(job: Job, mpirun: str) -> list[str]:
    words = [mpirun, "-n", str(job.total)]
    if job.hosts:
        words += ["-hosts", ",".join(f"{name}:{count}" for name, count in job.hosts)]
    return [*words, *job.extra, sys.executable, *job.script]


def horovodrun(job: Job) -> list[str]:
    """horovodrun, which starts the processes by itself or by mpirun."""
    words = ["horovodrun", "-np", str(job.total)]
    if job.hosts:
        words += ["-H", ",".join(f"{name}:{count}" for name, count in job.hosts)]
    return [*words, *job.extra, sys.executable, *job.script]


def python(job: Job) -> list[str]:
    """The script itself: one process; on XLA devices it starts one for each."""
    return [sys.executable, *job.script]


LAUNCHERS: Mapping[str, Callable[[Job], list[str]]] = {
    start.__name__: start for start in (torchrun, spawn, srun, openmpi, mpich, intelmpi, horovodrun, python)
}

# What a machine without it is told.
INSTALL = {
    "torchrun": "pip install torch",
    "srun": "start it where Slurm is, or --emit sbatch",
    "openmpi": "apt-get install openmpi-bin, or --launcher torchrun",
    "mpich": "apt-get install mpich, or --launcher torchrun",
    "intelmpi": "pip install impi-rt, or --launcher torchrun",
    "horovodrun": "pip install horovod, or --launcher torchrun",
}


def require(command: Sequence[str], launcher: str) -> None:
    """Raise BadInput, with what to do, if the program that a command line begins with is not on this machine."""
    if command[0] != "torchrun" and shutil.which(command[0]) is None:
        raise BadInput("ddpify run", f"no {command[0]} here", INSTALL[launcher])


def _mpirun(launcher: str, names: Sequence[str], makers: Sequence[str]) -> str:
    """The first program of these names that says that it is of that maker; three makers call theirs mpirun."""
    for name in names:
        path = shutil.which(name)
        if path is not None:
            said = subprocess.run([path, "--version"], capture_output=True, text=True, timeout=60, check=False).stdout
            if any(maker in said for maker in makers):
                return name
    raise BadInput("ddpify run", f"no mpirun of {launcher} here", INSTALL[launcher])
