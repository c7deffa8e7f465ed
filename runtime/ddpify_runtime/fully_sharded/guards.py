"""What would go on with a part of a parameter, or with none, and say nothing."""

from __future__ import annotations

from collections.abc import Iterable
from typing import Any
from weakref import WeakSet

from torch import Tensor
from torch.optim import Optimizer
from torch.optim.optimizer import register_optimizer_step_pre_hook

from ..forward import region
from ..torch_internals import read_sharded

_GIVEN_UP = "_ddpify_is_sharded"
_seen: WeakSet[Optimizer] = WeakSet()
_began = False


def begin(parameters: Iterable[Tensor]) -> None:
    """From now on an optimizer must not have these, and a number that is read is that of the whole tensor."""
    global _began
    for parameter in parameters:
        setattr(parameter, _GIVEN_UP, True)
    if not _began:
        _began = True
        register_optimizer_step_pre_hook(_require_parts)
        read_sharded(_number)


def _require_parts(optimizer: Optimizer, args: Any, kwargs: Any) -> None:
    if optimizer in _seen:
        return
    _seen.add(optimizer)
    if any(hasattr(parameter, _GIVEN_UP) for group in optimizer.param_groups for parameter in group["params"]):
        raise RuntimeError(
            "ddpify: this optimizer was given the parameters before fully_shard had divided them, so it would change "
            "nothing; give it model.parameters() after that"
        )


def _number(tensor: Any) -> Any:
    """A collective."""
    if region.alone():
        raise RuntimeError("ddpify: a number of a parameter is read by one rank alone, and each has a part of it")
    return tensor.full_tensor().item()
