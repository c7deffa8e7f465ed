"""What a script converted for XLA imports, where others import torch_xla.distributed.xla_backend."""

from __future__ import annotations

from . import engines
from .engines.xla import tensor_types

engines.use("xla")


def __getattr__(name: str) -> tensor_types.TensorType:
    """`ddpify_runtime.xla.FloatTensor` and its like."""
    try:
        return tensor_types.TYPES[name]
    except KeyError:
        raise AttributeError(f"module {__name__!r} has no attribute {name!r}") from None
