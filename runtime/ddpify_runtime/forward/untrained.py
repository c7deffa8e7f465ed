"""Modules that nobody trains, such as a teacher, averaged weights or a loss of features: divided, too.

No optimizer names them, and so no line of the script makes them distributed. But whoever computes with a batch that the
ranks hold together has to make it whole, each time: the module in whose forward that happens gets a routed call then,
which is that of every rank, since all of them meet there. From its next call on it takes this rank's rows.
"""

from __future__ import annotations

import inspect
import sys
from threading import current_thread, main_thread
from types import CodeType, FrameType
from typing import Any

import torch
from torch import nn

from ..gradients.reduction import NoReduction
from ..torch_internals import CALL
from . import compiled, region
from .routed_call import RoutedCall


class UntrainedCall(RoutedCall):
    """Stands in front of the call of a module without gradients of its own."""

    remedy = "call its `forward` by name, which is not divided"

    def __call__(self, *args: Any, **kwargs: Any) -> Any:
        if torch.is_grad_enabled() and self._inventory().trainable:
            return self.call(*args, **kwargs)
        return super().__call__(*args, **kwargs)


def divide_who_joins(has_gradients: bool) -> None:
    """A batch is about to be made whole: divide the module whose forward needs it from its next call on.

    Args:
        has_gradients: whether they are enabled in that forward.
    """
    if region.current() is not None or region.alone() or current_thread() is not main_thread():
        return
    module = _outermost(sys._getframe(1))
    if module is None or vars(module).get(CALL) is not None or isinstance(module, torch.jit.ScriptModule):
        return
    if compiled.is_compiled(module) or next(module.parameters(), None) is None:  # a loss has none
        return
    if has_gradients and any(parameter.requires_grad for parameter in module.parameters()):
        return
    vars(module)[CALL] = UntrainedCall(module, None, lambda _: NoReduction(), True)


def _outermost(frame: FrameType | None) -> nn.Module | None:
    """The module whose forward the frame is in, and which is part of no other one that is called."""
    found = None
    while frame is not None:
        code = frame.f_code
        # By the name first: asking any frame for its variables would keep what they hold now.
        if code.co_name == "forward" and code.co_argcount:
            owner = frame.f_locals.get(code.co_varnames[0])
            if isinstance(owner, nn.Module) and _forward(type(owner)) is code:
                found = owner
        frame = frame.f_back
    return found


def _forward(kind: type[nn.Module]) -> CodeType | None:
    return getattr(inspect.unwrap(kind.forward), "__code__", None)
