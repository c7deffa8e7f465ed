"""Libraries find no process group: what they bring together over ranks of their own accord is of all ranks already.

Metrics (torchmetrics, MONAI), codebooks (vector_quantize_pytorch) and helpers that many projects copy ask
`torch.distributed.is_initialized()`, and sum over ranks if so. Each rank has the outputs and labels of the whole batch
here, so they would count everything once per rank. A script's own question is answered by DDP302, to the same effect.
"""

from __future__ import annotations

import types

from torch.distributed import distributed_c10d

from ..torch_internals import TRACER

# Who is told the truth: whoever runs the collectives, and the script, whose own questions the conversion has answered.
_TOLD = frozenset({"torch", "ddpify_runtime", "ddpify_recorder", "__main__", "__mp_main__"})

_CODE = distributed_c10d.is_initialized.__code__
_is_initialized = types.FunctionType(_CODE, vars(distributed_c10d))


def hide() -> None:
    """From now on `torch.distributed.is_initialized()` is false for others than torch, this package and the script.

    It stays the same function, whose body is exchanged: some have imported it by name, and torch.compile knows it.
    """
    distributed_c10d.is_initialized.__code__ = _asked.__code__


def show() -> None:
    """Let everybody know again."""
    distributed_c10d.is_initialized.__code__ = _CODE


def _asked() -> bool:  # runs among the globals of torch's module
    import sys

    from ddpify_runtime.agreement.hidden_group import answer

    return answer(str(sys._getframe(1).f_globals.get("__name__", "")))


def answer(module: str) -> bool:
    """Whether there is a process group for the code of a module."""
    return module.partition(".")[0] in _TOLD and not module.startswith(TRACER) and _is_initialized()
