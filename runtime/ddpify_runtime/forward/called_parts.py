"""A trained module that is never called itself, while its parts are: each of these is divided by itself.

A container of an encoder and a pooling, a trainer that holds its networks, a model whose methods call its layers. That
a module is trained, and that nobody calls it, is known when an optimizer has taken its first step: from then on every
part of it that is called takes this rank's rows. That first step is computed whole.
"""

from __future__ import annotations

import weakref
from threading import current_thread, main_thread
from typing import Any

import torch
from torch import nn
from torch.nn.parameter import is_lazy
from torch.optim.optimizer import register_optimizer_step_post_hook

from ..gradients.reduction import is_in_pass
from ..torch_internals import CALL, BatchNorm, call_past_slot, default_group, has_compiled, saved_tensor_hooks
from . import region, routes
from .routed_call import RoutedCall, is_recorded, route
from .untrained import UntrainedCall

STEPS = 16  # without a gradient; a module is not looked at any more then

_looks: dict[int, tuple[weakref.ref[RoutedCall], int]] = {}  # at each module's call, in their order, and how many
_hook: Any = None


class PartCall(UntrainedCall):
    """Stands in front of a part that is called, and divides it in training, too.

    Not in what is checkpointed, which is computed again in the backward pass, with the same random numbers (M12); nor
    in training mode without gradients, which may be the first time that it is computed.
    """

    remedy = "call the model itself, and its parts in its forward"

    def __call__(self, *args: Any, **kwargs: Any) -> Any:
        if current_thread() is not main_thread():
            return self.call(*args, **kwargs)
        if _may_be_recomputed() if torch.is_grad_enabled() else self.module.training:
            return self.call(*args, **kwargs)
        return RoutedCall.__call__(self, *args, **kwargs)


class WaitingCall:
    """Stands in front of a part until it is called in training, outside of its module."""

    def __init__(self, part: nn.Module, before: UntrainedCall | None, whole: RoutedCall) -> None:
        """before: what was in its place. whole: the call of the module."""
        self.living, self.before, self.whole = weakref.ref(part), before, weakref.ref(whole)

    @property
    def call(self) -> Any:
        """What computes the part's output, past this."""
        part = self.living()
        assert part is not None
        return self.before or call_past_slot(part)

    def __call__(self, *args: Any, **kwargs: Any) -> Any:
        part, whole = self.living(), self.whole()
        if part is None or whole is None or not self._is_called_alone():
            return self.call(*args, **kwargs)
        _release(part)
        whole.parts[id(part)] = made = route(part, None, whole.reduce, whole.sync_batch_norm, kind=PartCall)
        return made(*args, **kwargs)

    def _is_called_alone(self) -> bool:
        if not torch.is_grad_enabled() or is_recorded() or region.current() or region.is_apart():
            return False
        return default_group() is not None and current_thread() is main_thread() and not _may_be_recomputed()


def watch(call: RoutedCall) -> None:
    """Look after the next optimizer steps whether a module is trained that is not called."""
    global _hook
    _looks[call.number] = weakref.ref(call), 0
    if _hook is None:  # it stays, as torch goes through all of them while a step ends
        _hook = register_optimizer_step_post_hook(lambda *_: _look())


def _look() -> None:
    for number, (living, looks) in [*_looks.items()]:
        call = living()
        module = None if call is None else call.living()
        if call is None or module is None or call.called or looks == STEPS:
            del _looks[number]
        elif all(parameter.grad is None for parameter in module.parameters()):
            _looks[number] = living, looks + 1
        else:
            del _looks[number]
            if default_group() is not None and not has_compiled():
                _wait(module, call)


def _wait(module: nn.Module, call: RoutedCall) -> None:
    """Put something in front of each trained part that no other module's call covers."""
    covered = {id(p) for other in routes.calls if other.called and (each := other.living()) for p in each.parameters()}
    for part in module.modules():
        before = vars(part).get(CALL)
        if part is module or (before is not None and type(before) is not UntrainedCall) or not _can_be_called(part):
            continue
        if any(p.requires_grad and not is_lazy(p) and id(p) not in covered for p in part.parameters()):
            vars(part)[CALL] = WaitingCall(part, before, call)
            call.on_call = _release


def _can_be_called(part: nn.Module) -> bool:
    """Whether a part has a forward, and one that can be divided by itself: the statistics of a batch cannot."""
    return type(part).forward is not nn.Module.forward and not isinstance(part, (BatchNorm, torch.jit.ScriptModule))


def _release(module: nn.Module) -> None:
    """Put nothing in front of the parts of a module that is called itself."""
    for part in module.modules():
        if isinstance(waiting := vars(part).get(CALL), WaitingCall):
            vars(part)[CALL] = waiting.before


def _may_be_recomputed() -> bool:
    return is_in_pass() or saved_tensor_hooks() is not None
