"""torch's ZeroRedundancyOptimizer with the contract of one process: each rank keeps the state of some parameters.

The gradients are whole on every rank, so the rank that keeps a parameter's state makes the step that one process makes,
and sends the parameter to the others: bit for bit what all ranks would have computed. Only optimizers of torch.optim
are taken, since they step each parameter by itself; others may look at all of them (a norm, a line search).

Beside what torch's does: the class is that of the optimizer too (`isinstance`, prints), its defaults are complete
(OneCycleLR asks for "betas"), groups may be iterators, `state_dict()` is whole on rank 0 without a call before, and
`load_state_dict` leaves what it is given as it was.
"""

from __future__ import annotations

import types
import warnings
from collections.abc import Iterable, Iterator
from functools import cache
from itertools import chain
from typing import TYPE_CHECKING, Any, NoReturn, TypeVar, cast

import torch
import torch.distributed as dist
from torch import Tensor
from torch.optim import Optimizer

from .forward import region
from .sharding.collectives import gather_objects_on
from .torch_internals import tree_map_only

if TYPE_CHECKING:
    from torch.distributed.optim import ZeroRedundancyOptimizer as _Base

AnyOptimizer = TypeVar("AnyOptimizer", bound=Optimizer)
_COUPLES = {"LBFGS"}  # of torch.optim: steps along a direction of all parameters


def ZeroRedundancyOptimizer(  # noqa: N802  the name that readers know
    params: Iterable[Any], optimizer_class: type[AnyOptimizer], **defaults: Any
) -> AnyOptimizer:
    """An optimizer whose state is divided over the processes, each parameter's on one; alone the optimizer itself.

    Args:
        params: parameters or groups, as for the optimizer; all of one dtype.
        optimizer_class: one of torch.optim, but for LBFGS. defaults: its further arguments.

    Returns:
        torch's ZeroRedundancyOptimizer, which is an `optimizer_class` too. Its `state_dict()`, which all ranks call, is
        that of one process on rank 0, on the CPU; on the others it holds what they keep, to be loaded again.
        `load_state_dict` takes both, and the checkpoints of the original.

    Raises:
        TypeError: the optimizer is none of torch.optim.
        ValueError: the parameters are of several dtypes (torch's ZeroRedundancyOptimizer says so).
    """
    if not dist.is_initialized() or dist.get_world_size() == 1:
        return optimizer_class(params, **defaults)
    if not optimizer_class.__module__.startswith("torch.optim") or optimizer_class.__name__ in _COUPLES:
        raise TypeError(
            f"ddpify: the state of {optimizer_class.__name__} cannot be divided: its step may look at all parameters; "
            "use an optimizer of torch.optim other than LBFGS, or convert without --optimizer-sharding"
        )
    made = _class_of(cast("Any", optimizer_class))
    return cast("AnyOptimizer", made([*map(_listed, params)], optimizer_class, **defaults))


@cache
def _class_of(optimizer_class: Any) -> Any:
    """The class of the optimizers of a class whose state is divided."""
    with warnings.catch_warnings():  # of its neighbours there, about torch.jit
        warnings.simplefilter("ignore", DeprecationWarning)
        from torch.distributed.optim import ZeroRedundancyOptimizer as Base  # takes a second

    return types.new_class(optimizer_class.__name__, (_Divided, Base, optimizer_class))


def _listed(given: Any) -> Any:
    """A group with a list of parameters: torch's ZeroRedundancyOptimizer goes through them twice."""
    if not isinstance(given, dict):
        return given
    params = given["params"]
    return {**given, "params": [params] if isinstance(params, Tensor) else [*params]}


if not TYPE_CHECKING:
    _Base = object


class _Divided(_Base):
    """What is otherwise than in torch's ZeroRedundancyOptimizer."""

    def __init__(self, params: Iterable[Any], optimizer_class: type[Optimizer], **defaults: Any) -> None:
        super().__init__(params, optimizer_class, **defaults)
        self.defaults = dict(self.optim.defaults)
        # Hooks on the steps of all optimizers are called for this one, and would be for the inner one too.
        step = type(self.optim).step
        self.optim.step = types.MethodType(getattr(step, "__wrapped__", step), self.optim)

    @property  # type: ignore[override]
    def state(self) -> NoReturn:
        raise RuntimeError(
            "ddpify: optimizer.state cannot be read or set, for each rank keeps a part of it; leave that out, or "
            "convert without --optimizer-sharding"
        )

    @state.setter
    def state(self, value: Any) -> None:
        if self.initialized:
            _ = self.state

    def add_param_group(self, param_group: dict[str, Any]) -> None:
        super().add_param_group(_listed(param_group))

    def state_dict(self) -> dict[str, Any]:
        if region.alone():
            raise RuntimeError("ddpify: optimizer.state_dict() is put together by all ranks, and one calls it alone")
        numbers = {parameter: number for number, parameter in enumerate(_parameters_of(self))}
        groups = [{**group, "params": [*map(numbers.get, group["params"])]} for group in self.param_groups]
        local = self.optim.state_dict()["state"]
        mine = {numbers[each]: local[place] for place, each in enumerate(_parameters_of(self.optim)) if place in local}
        sent = tree_map_only(Tensor, lambda tensor: tensor.detach().cpu(), mine) if dist.get_rank() else {}
        shards = gather_objects_on(0, sent)
        if not shards:
            return {"state": Shard(mine), "param_groups": groups}
        return {"state": dict(sorted(chain.from_iterable(map(dict.items, [mine, *shards])))), "param_groups": groups}

    @torch.no_grad()
    def load_state_dict(self, state_dict: dict[str, Any]) -> None:
        saved = state_dict["param_groups"]
        if [len(group["params"]) for group in saved] != [len(group["params"]) for group in self.param_groups]:
            raise ValueError("the loaded state dict has other parameter groups, or as many with other sizes")
        numbers = chain.from_iterable(group["params"] for group in saved)
        number_of = dict(zip(_parameters_of(self), numbers, strict=True))
        kept = dict(dict.items(state_dict["state"]))
        local = [number_of[parameter] for parameter in _parameters_of(self.optim)]
        mine = {number: kept[number] for number in local if number in kept}
        groups = [
            {**group, "params": [number_of[parameter] for parameter in inner["params"]]}
            for group, inner in zip(saved, self.optim.param_groups, strict=True)
        ]
        self.optim.load_state_dict({"state": mine, "param_groups": groups})
        self.param_groups = [
            {**inner, "params": group["params"]}
            for group, inner in zip(self.param_groups, self.optim.param_groups, strict=True)
        ]

    def __reduce__(self) -> NoReturn:
        raise TypeError("ddpify: an optimizer whose state is divided cannot be copied or saved; use its state_dict()")


def _parameters_of(optimizer: Optimizer) -> Iterator[Tensor]:
    return chain.from_iterable(group["params"] for group in optimizer.param_groups)


class Shard(dict[int, Any]):
    """The state that a rank other than 0 keeps, for `load_state_dict`: whoever looks into it would see a part."""

    def _look(self, *args: Any) -> NoReturn:
        raise RuntimeError(
            "ddpify: only rank 0 has the whole optimizer.state_dict(): save it, or convert without --optimizer-sharding"
        )

    __getitem__ = __iter__ = __len__ = __contains__ = _look
    get = keys = values = items = _look

    def __reduce__(self) -> tuple[Any, ...]:
        return Shard, (dict(dict.items(self)),)
