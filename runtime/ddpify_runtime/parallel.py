"""DistributedDataParallel with nn.DataParallel's contract: the whole batch goes in, the whole outputs come out.

The module stays the user's own object: same identity, type, attributes, state_dict keys and pickle. Only its call is
routed, through the per-instance slot that torch keeps for `module.compile()` and leaves out of pickles and copies.
Calls of other methods run whole on every rank and communicate nothing (M1).

Gradients are reduced from when a backward pass enters a shared region (gradients/reduction.py). Passes that go round
the forward (M3) are left alone: they are equal on every rank anyway.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from functools import cached_property
from typing import Any, Literal, SupportsIndex, TypeVar

import torch
import torch.distributed as dist
from torch import nn

from . import report
from .forward import batch_norm, called_parts, compiled, late_draws, routes, untrained
from .forward.routed_call import RoutedCall, route
from .forward.routes import say_what_was_not_called
from .gradients import passes
from .gradients.grad import average
from .gradients.reduction import Reduction
from .lazy import held_rows
from .torch_internals import CALL

Module = TypeVar("Module", bound=nn.Module)


def DistributedDataParallel(  # noqa: N802  the name that readers know
    module: Module,
    device_ids: Sequence[int | torch.device] | None = None,
    *,
    gradient_as_bucket_view: bool = False,
    sync_batch_norm: bool = True,
    reduction: Literal["ddp", "native"] = "ddp",
) -> Module:
    """Divide the training forwards of a module over the processes and average its gradients; returns the same module.

    Args:
        module: any module, on its device or not yet. Calling this again for the same module changes nothing. Of an
            object or a dictionary that is none, and trains the modules that it holds, these are divided.
        device_ids: the one device of this process, as for torch's; the module is where its parameters are.
        gradient_as_bucket_view: as for torch's: saves the memory of the gradients, which another step overwrites.
        sync_batch_norm: normalise training batches with the statistics of the whole batch, as one process would (M8);
            False: with those of each rank's rows, and keep the running statistics of rank 0, as torch's does.
        reduction: "ddp": an all-reduce for each 25 MB of gradients, while the backward goes on, as torch's; "native":
            one after each backward, as torch_xla recommends for XLA. The result is the same up to rounding.

    Returns:
        `module` itself. With one process nothing else happens.

    Raises:
        ValueError: there is no such reduction.
        TypeError: it is no module, and holds none, or trains tensors beside them.
    """
    if not dist.is_initialized() or dist.get_world_size() == 1:
        return module
    if not isinstance(module, nn.Module):
        for each in _held_by(module):
            DistributedDataParallel(each, device_ids, sync_batch_norm=sync_batch_norm, reduction=reduction)
        return module
    current = vars(module).get(CALL)
    if isinstance(current, called_parts.WaitingCall):
        current = current.before
    if isinstance(current, untrained.UntrainedCall):
        current = current.compiled
    elif isinstance(current, RoutedCall):
        return module
    if reduction not in ("ddp", "native"):
        raise ValueError(f"reduction must be 'ddp' or 'native', not {reduction!r}")

    def reduce(module: nn.Module) -> Reduction:
        # No gradient is a view of two buckets.
        as_views = gradient_as_bucket_view and not _shares_parameters(module)
        return Reduction(module, in_one=reduction == "native", as_views=as_views)

    called_parts.watch(route(module, current, reduce, sync_batch_norm))
    compiled.follow(_compiled, _recompiled)
    passes.follow(average)
    late_draws.watch()
    held_rows.tell_of_joins(untrained.divide_who_joins)
    report.start()
    report.ask(say_what_was_not_called)
    return module


def _compiled(module: nn.Module, made: nn.Module) -> None:
    """torch.compile(module) would trace past the routed call: route what it made."""
    routed = vars(module).get(CALL)
    if isinstance(routed, RoutedCall) and not isinstance(routed, untrained.UntrainedCall):
        route(made, None, routed.reduce, routed.sync_batch_norm)


def _recompiled(routed: Any, call: Callable[..., Any]) -> bool:
    """module.compile() put a new call in the place of a routed one: that stays, and calls it."""
    if isinstance(routed, RoutedCall):
        routed.compiled = call
    return isinstance(routed, (RoutedCall, batch_norm.BatchNormCall))


def replicate(module: nn.Module, device_ids: Sequence[int | torch.device] | None = None, **options: Any) -> None:
    """Make a module distributed where it is, like torch's composable `replicate`; for `self`, which cannot be assigned.

    Args:
        module: any module. device_ids: the one device of this process. options: as for DistributedDataParallel.
    """
    DistributedDataParallel(module, device_ids, **options)


def _held_by(thing: object) -> list[nn.Module]:
    """The modules that an object of the script's own trains, or a dictionary by its names."""
    values = [*getattr(thing, "__dict__", {}).values(), *(thing.values() if isinstance(thing, dict) else ())]
    values += [each for value in values if isinstance(value, list | tuple) for each in value]
    values += [each for value in values if isinstance(value, dict) for each in value.values()]
    modules = [value for value in values if isinstance(value, nn.Module)]
    bare = any(isinstance(value, torch.Tensor) and value.is_leaf and value.requires_grad for value in values)
    if bare or not modules:
        raise TypeError(f"ddpify: a {type(thing).__name__} is no torch.nn.Module, and its tensors cannot be divided")
    return modules


def _shares_parameters(module: nn.Module) -> bool:
    """Whether another divided module has some of its parameters."""
    mine = {id(parameter) for parameter in module.parameters()}
    return any(id(p) in mine for other in routes.routed() if other is not module for p in other.parameters())


class DataParallel(nn.DataParallel[Module]):
    """nn.DataParallel's face for one device: `.module`, and "module." before the state_dict's keys.

    For scripts that were written for nn.DataParallel, so that their checkpoints load in both versions (M13).
    """

    def __init__(self, module: Module, device_ids: object = None, output_device: object = None, dim: int = 0) -> None:
        """The devices are left out; a class that is derived from nn.DataParallel may give them."""
        nn.Module.__init__(self)
        self.module = module
        self.device_ids = []
        self.dim = dim

    @cached_property
    def src_device_obj(self) -> torch.device:  # type: ignore[override]
        """The device of this process, where the module is when this is first read."""
        return next((each.device for each in self.module.parameters()), torch.device("cpu"))

    @cached_property
    def output_device(self) -> int | torch.device:  # type: ignore[override]
        """The same, by its number on GPUs."""
        index: int | None = self.src_device_obj.index
        return self.src_device_obj if index is None else index

    def forward(self, *inputs: Any, **kwargs: Any) -> Any:
        """What the module makes of its inputs, moved to its device, as nn.DataParallel moves them."""
        device = next((each.device for each in self.module.parameters()), None)
        if device is None or device.type == "cpu":
            return self.module(*inputs, **kwargs)
        return self.module(*_moved(inputs, device), **_moved(kwargs, device))

    def __reduce_ex__(self, protocol: SupportsIndex) -> str | tuple[Any, ...]:
        if type(self) is not DataParallel:  # a class of the script's own stays one
            return super().__reduce_ex__(protocol)
        return nn.DataParallel, (self.module,), self.__getstate__()  # type: ignore[no-untyped-call]


def _moved(value: Any, device: torch.device) -> Any:
    """Inputs with their tensors on a device: in tuples, lists and dictionaries, too."""
    if isinstance(value, torch.Tensor):
        return value.to(device, non_blocking=True)
    if isinstance(value, dict):
        return {key: _moved(each, device) for key, each in value.items()}
    if type(value) in (tuple, list):
        return type(value)(_moved(each, device) for each in value)
    return value
