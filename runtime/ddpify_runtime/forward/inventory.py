"""What a module consists of at this moment, in one quick walk, since it is looked at before every forward."""

from __future__ import annotations

from typing import NamedTuple

import torch
from torch import Tensor, nn

from ..gradients.reduction import Reduction
from ..torch_internals import contents, gradient_hooks, hooks


class Inventory(NamedTuple):
    """parts: identity and mode of every part (M7). trainable: identity, dtype and device of every trainable parameter
    (M5, M6). hooks: the number of every hook on a part, which torch gives once, and the identity of every parameter
    that has hooks other than ours or is computed from something else."""

    parts: tuple[tuple[int, bool], ...]
    trainable: tuple[tuple[int, torch.dtype, torch.device], ...]
    hooks: tuple[int, ...]


def inventory(module: nn.Module) -> Inventory:
    """Walk over a module: three times as fast as `modules()` and `parameters()`, which make names."""
    parts: dict[int, bool] = {}
    trainable: dict[int, tuple[int, torch.dtype, torch.device]] = {}
    seen: list[int] = []
    waiting = [module]
    while waiting:
        part = waiting.pop()
        if id(part) in parts:
            continue
        parts[id(part)] = part.training
        for each in hooks(part):
            seen += each
        parameters, inside = contents(part)
        for parameter in parameters.values():
            if parameter is not None and parameter.requires_grad:
                trainable[id(parameter)] = id(parameter), parameter.dtype, parameter.device
                if is_hooked(parameter):
                    seen.append(id(parameter))
        waiting += [each for each in inside.values() if each is not None]
    return Inventory(tuple(parts.items()), tuple(trainable.values()), tuple(seen))


def is_hooked(parameter: Tensor) -> bool:
    """Whether something of the script's sees the gradient of a parameter, or it is no parameter of its own."""
    before, after = gradient_hooks(parameter)
    return bool(
        before
        or not parameter.is_leaf
        or (after and not all(isinstance(getattr(hook, "__self__", None), Reduction) for hook in after.values()))
    )
