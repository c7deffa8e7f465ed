"""A rank's own random numbers, for dropout and noise in the divided forward: no two samples have the same (HAZARDS S2).

The generators that all ranks share stay where they are meanwhile, and so go on alike on every rank.
"""

from __future__ import annotations

import hashlib
from collections.abc import Iterator
from contextlib import contextmanager

import torch
import torch.distributed as dist
from torch import Tensor

_states: dict[str, Tensor] = {}  # by kind of device


@contextmanager
def own_random_numbers(device: torch.device) -> Iterator[None]:
    """Draw from this rank's own stream, on the host and on a GPU; it goes on where it ended the last time.

    It begins at a place that the common generators and the rank decide: the same run gives the same numbers again.
    """
    common = torch.get_rng_state()
    on_gpu = torch.cuda.get_rng_state(device) if device.type == "cuda" else None
    torch.set_rng_state(_own("cpu", common))
    if on_gpu is not None:
        torch.cuda.set_rng_state(_own("cuda", common), device)
    try:
        yield
    finally:
        _states["cpu"] = torch.get_rng_state()
        torch.set_rng_state(common)
        if on_gpu is not None:
            _states["cuda"] = torch.cuda.get_rng_state(device)
            torch.cuda.set_rng_state(on_gpu, device)


def _own(kind: str, common: Tensor) -> Tensor:
    if kind not in _states:
        digest = hashlib.sha256(bytes(common.tolist()) + bytes(f"{kind} {dist.get_rank()}", "ascii")).digest()
        _states[kind] = torch.Generator(device=kind).manual_seed(int.from_bytes(digest[:7], "big")).get_state()
    return _states[kind]
