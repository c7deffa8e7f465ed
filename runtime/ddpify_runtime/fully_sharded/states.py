"""The state of a module of which each rank keeps a part, whole: checkpoints are those of one process."""

from __future__ import annotations

from collections import OrderedDict
from collections.abc import ItemsView, ValuesView
from typing import Any

import torch
from torch import Tensor, nn

from ..forward import region
from ..torch_internals import register_state_dict_hook, versions_of
from .whole import is_sharded


def follow(module: nn.Module) -> list[Any]:
    """Have a module give its whole state on every rank, and take its part of a whole one; what takes that back."""
    return [
        register_state_dict_hook(module, _put_together),
        module.register_load_state_dict_pre_hook(_divided),
    ]


def _put_together(module: nn.Module, state: OrderedDict[str, Any], prefix: str, metadata: Any) -> Any:
    """A collective. On the host: on a device it may have no room."""
    if region.alone():
        raise RuntimeError("ddpify: state_dict() is put together by all ranks, and one calls it alone")
    names = {prefix + name: p for name, p in module.named_parameters(remove_duplicate=False) if is_sharded(p)}
    made: dict[int, Tensor] = {}
    for name, parameter in names.items():
        if name in state:
            if id(parameter) not in made:
                part: Any = parameter.detach()
                made[id(parameter)] = part.full_tensor().cpu()
            state[name] = made[id(parameter)]
    if prefix:
        return None
    kept = Taken(state)
    kept.parameters = [*names.values()]
    kept.versions = [*versions_of(kept.parameters)]
    vars(kept).update(vars(state))  # torch's _metadata
    return kept


@torch.no_grad()
def _divided(
    module: nn.Module, state: dict[str, Any], prefix: str, metadata: Any, strict: bool, *lists: list[str]
) -> None:
    """Put this rank's part in the place of each whole parameter of a copy of what is loaded."""
    from torch.distributed.tensor import distribute_tensor

    for name, parameter in module.named_parameters(remove_duplicate=False):
        given = state.get(prefix + name)
        if is_sharded(parameter) and isinstance(given, Tensor) and given.shape == parameter.shape:
            local: Any = parameter
            given = given.detach().to(parameter.device)
            state[prefix + name] = distribute_tensor(given, local.device_mesh, local.placements, src_data_rank=None)


class Taken(OrderedDict[str, Any]):
    """The parameters as they were when it was taken.

    In one process these are the parameters themselves, which the next step changes. Whoever looks after that would get
    other numbers here: an error.
    """

    parameters: list[Tensor]
    versions: list[int]

    def _look(self) -> None:
        if hasattr(self, "versions") and self.versions != [*versions_of(self.parameters)]:
            raise RuntimeError(
                "ddpify: the model has changed since this state_dict() was taken, and so would have what it gave in "
                "one process; take copy.deepcopy(model.state_dict()), or convert without --strategy fsdp2"
            )

    def __getitem__(self, name: str) -> Any:
        self._look()
        return super().__getitem__(name)

    def items(self) -> ItemsView[str, Any]:  # type: ignore[override]
        self._look()
        return super().items()

    def values(self) -> ValuesView[Any]:  # type: ignore[override]
        self._look()
        return super().values()

    def __reduce_ex__(self, protocol: Any) -> Any:
        """Copied and saved as what one process has."""
        kept = {name: value for name, value in vars(self).items() if name not in Taken.__annotations__}
        return OrderedDict, (), kept or None, None, iter(self.items())
