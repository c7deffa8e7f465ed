"""The modules whose calls are divided over the processes."""

from __future__ import annotations

import gc
import weakref
from collections.abc import Iterable
from typing import TYPE_CHECKING

from torch import nn

if TYPE_CHECKING:
    from .routed_call import RoutedCall

calls: weakref.WeakSet[RoutedCall] = weakref.WeakSet()


def routed() -> list[nn.Module]:
    """The modules whose forwards are divided."""
    return [module for call in calls if (module := call.living()) is not None]


def say_what_was_not_called() -> None:
    """Trained past its routed call: `model.forward(x)`, a method, a function under torch.compile that calls it."""
    living = [(call, [*module.parameters()]) for call in calls if (module := call.living()) is not None]
    covered = {id(parameter) for call, parameters in living if call.called for parameter in parameters}
    for call, parameters in living:
        trained = [parameter for parameter in parameters if parameter.grad is not None]
        if any(id(parameter) not in covered for parameter in trained):
            call.say(
                "it is never called itself; call the model, rather than its forward or another method of it, and "
                "outside of functions that are compiled"
            )
        covered |= {id(parameter) for parameter in trained}


def release(parameters: Iterable[nn.Parameter] | None = None) -> None:
    """Drop everything that holds the process group, or some parameters; the next forward makes it again."""
    wanted = None if parameters is None else {id(parameter) for parameter in parameters}
    dropped = False
    for call in list(calls):
        for trainable in list(call.reductions):
            if wanted is None or any(number in wanted for number, _, _ in trainable):
                call.reductions.pop(trainable).release()
                call.reduction = None
                dropped = True
    if dropped:
        gc.collect()
