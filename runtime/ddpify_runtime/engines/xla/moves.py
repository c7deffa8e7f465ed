"""A module that moves to or from an XLA device keeps its parameters.

Elsewhere a move changes a parameter's data. XLA tensors are of another kind, so it would make new parameters: an
optimizer that was built before would not see them (X1), and each place of a tied weight would get its own (X2). They
are swapped in place instead. Only then: what torch swaps, nothing else may hold, such as DistributedDataParallel.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import torch
from torch import Tensor, nn

from ...torch_internals import MOVE

_move: Any = getattr(nn.Module, MOVE)


def _moved(self: nn.Module, fn: Callable[[Tensor], Tensor], recurse: bool = True) -> Any:
    if recurse:
        for child in self.children():
            getattr(child, MOVE)(fn)
    if not _moves(self, fn):
        return _move(self, fn, recurse=False)
    from ...forward.routes import release

    release(self.parameters(recurse=False))
    torch.__future__.set_swap_module_params_on_conversion(True)
    try:
        return _move(self, fn, recurse=False)
    finally:
        torch.__future__.set_swap_module_params_on_conversion(False)


def _moves(module: nn.Module, fn: Callable[[Tensor], Tensor]) -> bool:
    kinds = {(parameter.device, parameter.dtype) for parameter in module.parameters(recurse=False)}
    return any(fn(torch.empty(0, dtype=dtype, device=device)).device.type != device.type for device, dtype in kinds)


setattr(nn.Module, MOVE, _moved)
