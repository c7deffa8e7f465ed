"""The launchers whose processes a converted script can be: one row each, what they call things in the environment.

A new launcher is a row more. The order is that of nesting: where the variables of several are there, the first row that
matches is the innermost, since torchrun runs under mpirun or srun, and mpirun starts its daemons by srun. The variables
were read from the real ones: torch 2.13, Open MPI 4.1, MPICH 4.0, Intel MPI 2021.18, Slurm 22.05, Horovod 0.28,
torch_xla 2.9.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass

from . import meeting


@dataclass(frozen=True)
class Environment:
    """The place of this process: `rank` of `world_size`, `local_rank` on its machine; all zero-based counts."""

    rank: int = 0
    world_size: int = 1
    local_rank: int = 0


@dataclass(frozen=True)
class Launcher:
    """What a launcher says, and how its processes find rank 0.

    name: for people. rank, world_size, local_rank: the variables that hold them; processes of which one is missing are
        not this launcher's.
    meet: where rank 0 listens, of (environment, rank): its host and port. It is asked on every rank, in a run of
        several processes for which MASTER_ADDR and MASTER_PORT are not both set.
    """

    name: str
    rank: str
    world_size: str
    local_rank: str
    meet: Callable[[Mapping[str, str], int], tuple[str, int]]

    def place(self, environ: Mapping[str, str]) -> Environment | None:
        """The place of this process; None if this launcher did not start it.

        Raises:
            RuntimeError: a variable is not a number, or the rank lies outside of the world.
        """
        names = (self.rank, self.world_size, self.local_rank)
        if not all(name in environ for name in names):
            return None
        try:
            place = Environment(*(int(environ[name]) for name in names))
        except ValueError as error:
            raise RuntimeError(f"{self.name}: {', '.join(names)} must be numbers: {error}") from None
        if not 0 <= place.rank < place.world_size:
            raise RuntimeError(
                f"{self.name}: {self.rank}={place.rank} is not below {self.world_size}={place.world_size}"
            )
        return place


# Also Kubernetes' PyTorchJob, torch.multiprocessing.spawn (spawn.py), and whoever sets torch's variables by hand.
TORCHRUN = Launcher("torchrun", "RANK", "WORLD_SIZE", "LOCAL_RANK", meeting.given)

LAUNCHERS = [
    TORCHRUN,
    Launcher("horovodrun", "HOROVOD_RANK", "HOROVOD_SIZE", "HOROVOD_LOCAL_RANK", meeting.horovod),
    Launcher(
        "Open MPI", "OMPI_COMM_WORLD_RANK", "OMPI_COMM_WORLD_SIZE", "OMPI_COMM_WORLD_LOCAL_RANK", meeting.open_mpi
    ),
    # MPICH and Intel MPI. srun --mpi=pmi2 sets PMI_RANK too, and no MPI_LOCALRANKID: its processes are Slurm's.
    Launcher("MPICH", "PMI_RANK", "PMI_SIZE", "MPI_LOCALRANKID", meeting.hydra),
    # SLURM_NTASKS is there in the shell of an salloc and in a batch script too, which are one process each.
    Launcher("Slurm", "SLURM_PROCID", "SLURM_STEP_NUM_TASKS", "SLURM_LOCALID", meeting.slurm),
    # torch_xla.launch, on the chips of one machine; the ranks of several are XLA's business.
    Launcher("PJRT", "PJRT_LOCAL_PROCESS_RANK", "PJRT_LOCAL_PROCESS_COUNT", "PJRT_LOCAL_PROCESS_RANK", meeting.given),
]
