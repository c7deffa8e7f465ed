"""What a module consists of at this moment. It is walked over once; before every forward it is asked what changed."""

from __future__ import annotations

from collections.abc import Hashable
from typing import Any

import torch
from torch import Tensor, nn

from ..gradients.reduction import note
from ..torch_internals import contents, gradient_hooks, hooks
from .kept import Kept


class Inventory:
    """parts: identity, class, mode and own `forward` of every part (M7). trainable: identity, dtype and device of every
    trainable parameter (M5, M6). hooks: the number of every hook on a part, which torch gives once, and the identity of
    every parameter that has hooks other than ours or is computed from something else."""

    def __init__(self, module: nn.Module) -> None:
        parts: dict[int, tuple[type[nn.Module], bool, Any]] = {}
        trainable: dict[int, tuple[int, torch.dtype, torch.device]] = {}
        seen: list[int] = []
        walked: list[nn.Module] = []
        found: list[nn.Parameter] = []
        waiting, hooked = [module], False
        while waiting:
            part = waiting.pop()
            if id(part) in parts:
                continue
            parts[id(part)] = type(part), part.training, _own_forward(part)
            walked.append(part)
            for each in hooks(part):
                seen += each
            parameters, inside = contents(part)
            for parameter in parameters.values():
                if parameter is None:
                    continue
                found.append(parameter)
                if parameter.requires_grad:
                    trainable[id(parameter)] = id(parameter), parameter.dtype, parameter.device
                    if is_hooked(parameter):
                        seen.append(id(parameter))
                        hooked = True
            waiting += [each for each in inside.values() if each is not None]
        self.parts = tuple(parts.items())
        self.trainable = tuple(trainable.values())
        self.hooks = tuple(seen)
        try:
            self._kept = None if hooked else Kept(walked, found)
        except (KeyError, TypeError):
            self._kept = None

    def holds(self) -> bool:
        """Whether the module is as it was. A few lists are made and compared: no Python for each part."""
        return self._kept is not None and self._kept.is_same()


def _own_forward(part: nn.Module) -> Any:
    """What was put in the place of a part's method, as libraries of adapters do; None for nothing."""
    forward = vars(part).get("forward")
    return forward if isinstance(forward, Hashable) else id(forward)


def is_hooked(parameter: Tensor) -> bool:
    """Whether something of the script's sees the gradient of a parameter, or it is no parameter of its own."""
    before, after = gradient_hooks(parameter)
    return bool(
        before
        or not parameter.is_leaf
        or (after and not all(getattr(hook, "func", None) is note for hook in after.values()))
    )
