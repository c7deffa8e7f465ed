"""torch's fully_shard with nn.DataParallel's contract: the whole batch goes in, the whole outputs come out.

Each rank keeps a part of every parameter, of its gradient and of the optimizer's state. torch's hooks put a group of
parameters together for its forward and for its backward, and give each rank its part of the mean of the gradients over
the ranks: the very rule of gradients/reduction.py, so a forward that is divided and one that runs whole are both right.

torch's hooks are called from the slot of routed calls, and its class is taken off again: the module keeps its type,
hooks and attributes, and a copy that a trial makes computes with what it holds. A group is put apart after each
forward, the outermost one too: what stayed together would be used again after a step that changed the parts.
"""

from __future__ import annotations

import functools
from collections.abc import Callable
from typing import Any, TypeVar
from weakref import WeakKeyDictionary

import torch
import torch.distributed as dist
from torch import nn

from .. import report
from ..forward.routes import release, say_what_was_not_called
from ..gradients.reduction import align
from ..sharding import structure
from ..torch_internals import CALL, BatchNorm, call_past_slot, hooks, is_view, tree_leaves, tree_map_only
from ..trial.equal_ranks import require_equal_weights
from . import guards, states
from .call import ReducedByTorch, ShardedCall
from .whole import is_sharded

Module = TypeVar("Module", bound=nn.Module)

_states: WeakKeyDictionary[nn.Module, list[Any]] = WeakKeyDictionary()  # what gives and takes their whole state


def fully_shard(module: Module) -> Module:
    """Leave each process a part of a module's parameters, and divide its training forwards; returns the same module.

    Args:
        module: on its device, before an optimizer gets its parameters. Its layers may be given first, each a group of
            parameters that is put together for itself; what is left of them is a group too.

    Returns:
        `module` itself, whose parameters are DTensors now. With one process nothing happens.

    Raises:
        RuntimeError: a parameter has no size yet, or no dimension; or the ranks made different weights.
    """
    if not dist.is_initialized() or dist.get_world_size() == 1:
        return module
    if isinstance(vars(module).get(CALL), ShardedCall) or isinstance(module, BatchNorm):
        return module  # a layer that takes its statistics over the ranks goes with what is around it
    _require_divisible(module)
    for inner in module.modules():
        if isinstance(call := vars(inner).get(CALL), ShardedCall):  # a layer: put together, and not divided by itself
            vars(inner)[CALL] = call.compiled
            for handle in _states.pop(inner):
                handle.remove()
    require_equal_weights(module)
    whole = [parameter for parameter in module.parameters() if not is_sharded(parameter)]
    align(whole)
    guards.begin(whole)
    gathered = _sharded(module)
    release(module.parameters())
    vars(module)[CALL] = ShardedCall(module, gathered, ReducedByTorch, True)
    _states[module] = states.follow(module)
    report.start()
    report.ask(say_what_was_not_called)
    return module


def _require_divisible(module: nn.Module) -> None:
    for name, parameter in module.named_parameters():
        what = "no size before the first forward" if nn.parameter.is_lazy(parameter) else ""
        what = what or ("" if parameter.dim() else "a single number")
        if what:
            raise RuntimeError(
                f"ddpify: fully_shard: {type(module).__name__}.{name} has {what}, and no process can keep a part of "
                "it; convert without --strategy fsdp2"
            )


def _sharded(module: nn.Module) -> _Gathered:
    """Have torch shard a module; its call, with what torch does before and after."""
    from torch.distributed.fsdp import fully_shard as shard  # takes a second

    parts = list(module.modules())
    kinds = [type(part) for part in parts]
    attributes = [{*vars(part)} for part in parts]
    before, after = [{*each} for each in hooks(module)[:2]]
    device = next((p.device.type for p in module.parameters()), "cpu")
    shard(module, mesh=_mesh_of(dist.group.WORLD, device), reshard_after_forward=True)
    for part, kind, known in zip(parts, kinds, attributes, strict=True):
        if type(part) is not kind:
            part.__class__ = kind
        for name in {*vars(part)} - known:
            del vars(part)[name]
    of_torch = hooks(module)
    [begin] = [of_torch[0].pop(number) for number in {*of_torch[0]} - before]  # type: ignore[attr-defined]
    [end] = [of_torch[1].pop(number) for number in {*of_torch[1]} - after]  # type: ignore[attr-defined]
    return _Gathered(module, begin, end)


@functools.cache
def _mesh_of(group: dist.ProcessGroup, device_type: str) -> Any:
    """The ranks of the group, as torch's DTensors want them."""

    from torch.distributed.device_mesh import init_device_mesh

    return init_device_mesh(device_type, (group.size(),))


class _Gathered:
    """The call of a module whose parameters are put together meanwhile."""

    def __init__(self, module: nn.Module, begin: Callable[..., Any], end: Callable[..., Any]) -> None:
        self.module, self.begin, self.end = module, begin, end

    def __call__(self, *args: Any, **kwargs: Any) -> Any:
        if torch.is_inference_mode_enabled():  # what torch makes here once is trained later
            with torch.inference_mode(False), torch.no_grad():
                args, kwargs = self.begin(self.module, args, kwargs)
        else:
            args, kwargs = self.begin(self.module, args, kwargs)
        output = call_past_slot(self.module)(*args, **kwargs)
        if torch.is_grad_enabled():
            _require_seen(self.module, output)
            output = _without_views(output)
        return self.end(self.module, args, output)


def _without_views(output: Any) -> Any:
    """Copy the views among outputs: an operation in place on one would have torch forget that its backward comes."""
    made: dict[int, torch.Tensor] = {}

    def copy(tensor: torch.Tensor) -> torch.Tensor:
        if type(tensor) is not torch.Tensor or not (tensor.requires_grad and is_view(tensor)):
            return tensor
        return made.setdefault(id(tensor), tensor.clone())

    return tree_map_only(torch.Tensor, copy, output)


def _require_seen(module: nn.Module, output: Any) -> None:
    """torch puts the parameters together again when the backward comes to an output: it has to find them all."""
    seen = {id(leaf) for leaf in tree_leaves(output)}
    for leaf in structure.flatten(output)[0]:
        if isinstance(leaf, torch.Tensor) and leaf.requires_grad and id(leaf) not in seen:
            raise RuntimeError(
                f"ddpify: fully_shard: {type(module).__name__} returns a {type(output).__name__}, in which torch finds "
                "no outputs; return a tuple or a dict, or convert without --strategy fsdp2"
            )
