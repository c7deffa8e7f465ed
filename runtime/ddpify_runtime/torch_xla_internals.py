"""Every private name of torch_xla 2.9 that engines/xla and devtools use; see torch_internals.py.

Apart from them, since importing engines/xla changes what torch_xla computes, and devtools runs other people's scripts.
"""

from __future__ import annotations

from typing import Any

import torch
import torch_xla
from torch import Tensor, nn

# How launch starts processes and threads, and what this machine has of TPUs; runtime tells of devices in use.
from torch_xla._internal import pjrt as pjrt
from torch_xla._internal import tpu as tpu

_XLA = torch_xla._XLAC

# Of pjrt: what runs a function in a thread for each device.
RUN_THREADS = "_run_thread_per_device"


def is_initialized() -> bool:
    """Whether a device is in use; asking torch_xla.device() would start it."""
    return bool(_XLA._xla_runtime_is_initialized())


def run_recorded() -> None:
    """Run all that was recorded. Unlike torch_xla.sync() it is no step: that would also reseed the device."""
    _XLA._xla_sync_live_tensors(str(torch_xla.device()), [], False)


def run(tensor: Tensor) -> None:
    """Run what was recorded for a tensor, and wait for it with the interpreter's lock released; sync() keeps it."""
    _XLA._xla_sync_multi([tensor], [], True, True)


def make_current(device: str) -> None:
    """Make a device that of this thread; torch_xla.launch alone does so."""
    _XLA._xla_set_default_device(device)


def ordinal(device: str) -> int:
    """The rank of a device, in any thread; runtime.global_ordinal() is that of the current thread's device."""
    return int(_XLA._xla_get_device_ordinal(device))


def reset_token(device: str) -> None:
    """Begin a new chain of collectives on a device; xla_model has no way to."""
    _XLA._set_all_reduce_token(device, None)


def gathered(tensor: Tensor, count: int, groups: list[list[int]], channel: int) -> Tensor:
    """All-gather along dim 0 in a channel of a number, which xla_model.all_gather leaves out."""
    result: Tensor = _XLA._xla_all_gather(tensor, 0, count, groups, False, channel, True)
    return result


def mesh_of(group: Any) -> Any:
    """The ranks of torch_xla's process group, as its collectives take them."""
    return group._mesh


def gru() -> type[nn.GRU]:
    """torch's own GRU, in whose place torch_xla puts one of its own."""
    original: type[nn.GRU] = getattr(torch.nn.GRU, "_orig", torch.nn.GRU)
    return original
