"""Runs scripts on GPUs: a rank for each, or all ranks on one, if there are not enough."""

from __future__ import annotations

import functools
import subprocess
from collections.abc import Mapping, Sequence
from pathlib import Path

from tests import forked
from tests.e2e.harness import INTERPRETER

# TensorFloat-32 rounds to 10 bits, which hides more than it costs; CUBLAS_WORKSPACE_CONFIG: the same sums in each run.
EXACT = {"NVIDIA_TF32_OVERRIDE": "0", "CUBLAS_WORKSPACE_CONFIG": ":4096:8"}

# What is forked has one thread.
ONE_THREAD = {"OMP_NUM_THREADS": "1", "MKL_NUM_THREADS": "1"}

# NCCL takes each rank for one of another machine, whose first GPU is this one: it refuses two ranks of one machine on
# one GPU (https://docs.nvidia.com/deeplearning/nccl/user-guide/docs/env.html#nccl-hostid). They talk over sockets.
SHARED = {
    **{"NCCL_HOSTID": "machine<rank>", "NCCL_SOCKET_IFNAME": "lo", "GLOO_SOCKET_IFNAME": "lo"},
    **{"LOCAL_RANK": "0", "LOCAL_WORLD_SIZE": "1"},
}


@functools.cache
def devices() -> int:
    """How many GPUs there are; without a context on any of them in this process."""
    done = subprocess.run(["nvidia-smi", "--list-gpus"], capture_output=True, text=True, check=True)
    return len(done.stdout.splitlines())


def start(
    words: Sequence[str], world_size: int, folder: Path, environment: Mapping[str, str], limit: float
) -> tuple[int, str, str]:
    """Run a script in forked processes, each with a GPU as its current device. See `harness.Start`."""
    settings = EXACT | (SHARED if world_size > devices() else {})
    return forked.start(words, world_size, folder, {**environment, **settings}, limit, INTERPRETER)
