"""`torch.xla`, as there is `torch.cuda`: torch's checkpointing looks there for the device's random numbers.

A process has one device, which is always the current one.
"""

from __future__ import annotations

import sys
from contextlib import nullcontext

from torch_xla.core import xla_model

from ...torch_internals import register_device_module

_initialized = True


def device(index: int) -> nullcontext[None]:
    """Make a device the current one."""
    return nullcontext()


def device_count() -> int:
    """How many devices this process has."""
    return 1


def get_rng_state(device: int = 0) -> int:
    """The state of the device's generator."""
    return int(xla_model.get_rng_state())


def set_rng_state(state: int, device: int = 0) -> None:
    """Go on from a state of the device's generator."""
    xla_model.set_rng_state(state)


register_device_module("xla", sys.modules[__name__])
