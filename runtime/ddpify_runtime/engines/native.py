"""torch's own devices and process groups; what an engine says, and what holds where it says nothing."""

from __future__ import annotations

import os
import sys
import warnings
from types import TracebackType
from typing import Any

import torch.distributed as dist

from .. import accelerators
from ..launch import environment, start


class Engine:
    """What the rest of the runtime asks of whatever owns a device and runs its collectives.

    records: whether operations are recorded, and run later as one program that is compiled for it. All ranks then run
    one program, so each has as many rows (X6); tensors have no addresses, and views no memory that they share; what the
    host sends or reads in each step is dear, and so is anything that is computed only once.
    """

    records = False

    def start(self, backend: str, init_method: str | None) -> tuple[str, str | None] | None:
        """Become one of the processes of a run, and claim a device.

        Args: as for `init_process_group`.
        Returns what torch's `init_process_group` takes; None in a process that trains alone.

        Raises:
            RuntimeError: the backend is not known.
            SystemExit: there are several processes, but not the devices that the backend needs; a line says so.
        """
        start.start_processes()
        place = environment.join()
        if place.world_size == 1:
            return None
        if backend in accelerators.OF_BACKEND:
            device_type = accelerators.OF_BACKEND[backend]
            claim(device_type, place)
            return f"cpu:gloo,{device_type}:{backend}", init_method  # host tensors and objects travel too
        if backend == "mpi":
            return "mpi" if dist.is_mpi_available() and _is_started_by_mpirun() else "gloo", init_method
        if backend != "gloo":
            raise RuntimeError(f"backend {backend!r} cannot run here: use nccl, gloo, xccl, ccl, mpi, horovod or xla")
        return backend, init_method

    def steps(self, batches: Any) -> Any:
        """The iterator over batches that a loop gets: where a step begins and ends."""
        return batches

    def random_state(self) -> Any:
        """The state of the random number generator of this process's device; None if it has none of its own."""
        module = accelerators.module_in_use()
        return None if module is None else module.get_rng_state()

    def set_random_state(self, state: Any) -> None:
        """Go on from such a state."""
        accelerators.module_in_use().set_rng_state(state)

    def intercepted(self, result: Any, args: tuple[Any, ...], kwargs: dict[str, Any]) -> Any:
        """What a call that torch's dispatch handed to Python has made of its arguments, for autograd to go on with."""
        return result

    def report(self, kind: type[BaseException], error: BaseException, trace: TracebackType | None) -> None:
        """The last words on an error that no `except` has met; as sys.excepthook."""
        sys.__excepthook__(kind, error, trace)


def claim(device_type: str, place: environment.Environment) -> None:
    """Make the device of this process the current one."""
    module = accelerators.module_of(device_type)
    devices = module.device_count()
    if place.local_rank >= devices:
        print(
            f"ddpify: process {place.local_rank} of this machine has no {device_type} device of its own "
            f"({devices} visible): start at most one process per device (in Slurm ask for --gpus-per-node), "
            "or convert with --target cpu",
            file=sys.stderr,
            flush=True,
        )
        raise SystemExit(2)
    module.set_device(place.local_rank)
    # The first GPU needs no choosing in the thread of the backward, which then has no context yet; cuBLAS sets one.
    warnings.filterwarnings("ignore", "Attempting to run cuBLAS, but there was no current CUDA context")


def _is_started_by_mpirun() -> bool:
    """Whether torch's MPI backend will find the other processes: it knows them from mpirun alone."""
    by_mpirun = not {"OMPI_COMM_WORLD_SIZE", "PMI_SIZE"}.isdisjoint(os.environ)
    return by_mpirun and not dist.is_torchelastic_launched()


ENGINE = Engine()
