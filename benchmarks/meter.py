"""What a script of `benchmarks.scaling` calls: what its process has used, at the start of each epoch."""

from __future__ import annotations

import ctypes
import json
import os
import platform
import resource
import struct
import time

import torch

_used: list[float] = []

_PERF_EVENT_OPEN = {"x86_64": 298, "aarch64": 241}  # numbers of the system call
_INSTRUCTIONS, _BYTES = 1, 128  # PERF_COUNT_HW_INSTRUCTIONS, and those of a perf_event_attr (perf_event_open(2))
_INHERIT, _NO_KERNEL, _NO_HYPERVISOR = 1 << 1, 1 << 5, 1 << 6


def _counter() -> int:
    """A file that tells the user instructions of this process from now on, with its threads and children.

    Raises:
        OSError: the system does not count them, or not for this user.
    """
    attributes = bytearray(_BYTES)
    struct.pack_into("IIQ", attributes, 0, 0, _BYTES, _INSTRUCTIONS)
    struct.pack_into("Q", attributes, 40, _INHERIT | _NO_KERNEL | _NO_HYPERVISOR)
    libc = ctypes.CDLL(None, use_errno=True)
    given = (ctypes.c_char * _BYTES).from_buffer(attributes)
    file: int = libc.syscall(_PERF_EVENT_OPEN.get(platform.machine(), -1), given, 0, -1, -1, 0)
    if file < 0:
        raise OSError(ctypes.get_errno(), "instructions cannot be counted here")
    return file


_file = _counter() if os.environ.get("METER_COUNTS") == "instructions" else -1


def epoch() -> None:
    """An epoch starts, or the last one has ended."""
    if _file >= 0:
        _used.append(struct.unpack("Q", os.read(_file, 8))[0] / 1e9)
    elif os.environ.get("METER_COUNTS") == "seconds":
        torch.cuda.synchronize()
        _used.append(time.perf_counter())
    else:
        usage = [resource.getrusage(who) for who in (resource.RUSAGE_SELF, resource.RUSAGE_CHILDREN)]
        _used.append(sum(each.ru_utime + each.ru_stime for each in usage))
    with open(f"{os.environ['METER']}{os.environ.get('RANK', '0')}", "w") as file:
        json.dump(_used, file)
