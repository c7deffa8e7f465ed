"""What is set once for a process that uses XLA, so that scripts mean there what they mean on other devices."""

from __future__ import annotations

import copyreg
import logging
from typing import Any

from torch import Tensor

_handlers = list(logging.getLogger().handlers)
logging.disable(logging.WARNING)  # "Defaulting to PJRT_DEVICE=CPU", from every process
import torch_xla.distributed.xla_backend  # noqa: E402, F401

logging.disable(logging.NOTSET)
# torch_xla has called logging.basicConfig(), after which the script's own call would do nothing.
logging.getLogger().handlers[:] = _handlers


def _reduce(tensor: Tensor) -> Any:
    """Pickle a tensor on an XLA device as its copy on the host: files load where there is no torch_xla (X7)."""
    return (tensor.cpu() if tensor.device.type == "xla" else tensor).__reduce_ex__(2)


copyreg.pickle(Tensor, _reduce)
