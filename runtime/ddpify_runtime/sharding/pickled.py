"""Objects that came from another rank: their tensors are on this rank's own device, where those were on that one's.

A tensor is pickled with the number of its device, which is that of the rank that sends it: all would land on its GPU.
"""

from __future__ import annotations

import io
import pickle
from typing import Any

import torch

from .. import accelerators
from ..torch_internals import LOADS_STORAGE


def loads(data: bytes | bytearray) -> Any:
    """As `pickle.loads`."""
    return _Unpickler(io.BytesIO(data)).load()


class _Unpickler(pickle.Unpickler):
    def find_class(self, module: str, name: str) -> Any:
        return _OWN.get((module, name)) or super().find_class(module, name)


def _storage(data: bytes) -> Any:
    return torch.load(io.BytesIO(data), map_location=_MAP, weights_only=False)


def _placed(storage: torch.UntypedStorage, location: str) -> Any:
    """A storage on a device of the kind that it was on; None for one of the host."""
    kind = location.partition(":")[0]
    if accelerators.module_of(kind) is None:
        return None
    return torch.serialization.default_restore_location(storage, str(_device(kind, 0)))


def _device(kind: str, index: int | None = None) -> torch.device:
    module = accelerators.module_of(kind)
    if index is None:
        return torch.device(kind)
    return torch.device(kind, index if module is None else module.current_device())


_MAP: Any = _placed  # whose stubs know storages of another class
_OWN = {LOADS_STORAGE: _storage, ("torch", "device"): _device}
