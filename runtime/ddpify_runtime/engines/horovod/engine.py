"""Horovod as an engine: torch's tensors and devices, and every collective through `horovod.torch`.

horovodrun starts the processes, and Horovod finds the others by what that has set; torch's store, for what is not a
collective, is found as under every launcher. A process that trains alone does not import Horovod.
"""

from __future__ import annotations

import importlib.util
import os
import sys
from typing import NoReturn

import torch

from ...launch import environment
from .. import native


class Engine(native.Engine):
    """Devices are torch's own: what is otherwise is how a run starts, and what carries its tensors."""

    def start(self, backend: str, init_method: str | None) -> tuple[str, str | None] | None:
        if os.environ.get("DDPIFY_NPROC", "1") != "1" and environment.read().world_size == 1:
            count = os.environ["DDPIFY_NPROC"]
            _stop(f"DDPIFY_NPROC={count} starts no processes of Horovod: horovodrun -np {count} python {sys.argv[0]}")
        place = environment.join()
        if place.world_size == 1:
            return None
        if importlib.util.find_spec("horovod") is None:
            _stop(
                "this script was converted for Horovod, which is not installed: "
                "HOROVOD_WITH_PYTORCH=1 pip install horovod"
            )
        import horovod.torch as hvd

        hvd.init()
        if (hvd.rank(), hvd.size()) != (place.rank, place.world_size):
            _stop(
                f"the launcher says rank {place.rank} of {place.world_size}, Horovod rank {hvd.rank()} of "
                f"{hvd.size()}: start it by horovodrun, or by mpirun where Horovod is built with MPI"
            )
        if torch.cuda.is_available():
            native.claim("cuda", place)
        from .process_group import NAME

        return NAME, init_method


def _stop(reason: str) -> NoReturn:
    print(f"ddpify: {reason}", file=sys.stderr, flush=True)
    raise SystemExit(2)
