"""torch's own devices and process groups; what an engine says, and what holds where it says nothing."""

from __future__ import annotations

import sys
from types import TracebackType
from typing import Any

import torch

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
            RuntimeError: there are several processes, but not the devices that the backend needs.
        """
        start.start_processes()
        place = environment.join()
        if place.world_size == 1:
            return None
        if backend == "nccl":
            _claim_gpu(place)
            return "cpu:gloo,cuda:nccl", init_method  # host tensors and objects travel too
        if backend != "gloo":
            raise RuntimeError(f"backend {backend!r} cannot run here: use nccl, gloo or xla")
        return backend, init_method

    def steps(self, batches: Any) -> Any:
        """The iterator over batches that a loop gets: where a step begins and ends."""
        return batches

    def random_state(self) -> Any:
        """The state of the random number generator of this process's device; None if it has none of its own."""
        return torch.cuda.get_rng_state() if torch.cuda.is_initialized() else None

    def set_random_state(self, state: Any) -> None:
        """Go on from such a state."""
        torch.cuda.set_rng_state(state)

    def intercepted(self, result: Any, args: tuple[Any, ...], kwargs: dict[str, Any]) -> Any:
        """What a call that torch's dispatch handed to Python has made of its arguments, for autograd to go on with."""
        return result

    def report(self, kind: type[BaseException], error: BaseException, trace: TracebackType | None) -> None:
        """The last words on an error that no `except` has met; as sys.excepthook."""
        sys.__excepthook__(kind, error, trace)


def _claim_gpu(place: environment.Environment) -> None:
    devices = torch.cuda.device_count()
    if place.local_rank >= devices:
        raise RuntimeError(
            f"process {place.local_rank} of this machine has no GPU of its own ({devices} visible): "
            "start at most one process per GPU (in Slurm ask for --gpus-per-node), or convert with --target cpu"
        )
    torch.cuda.set_device(place.local_rank)


ENGINE = Engine()
