"""What stands in front of the call of a module of which each rank keeps a part."""

from __future__ import annotations

from collections.abc import Sequence
from contextlib import AbstractContextManager
from typing import Any

from torch import nn

from ..forward import region
from ..forward.division import Division
from ..forward.routed_call import RoutedCall
from ..gradients.reduction import NoReduction
from ..sharding.structure import Form
from .whole import whole

_SIZES = Division(reason="the sizes in it depend on its samples, and every rank has to use the same layers")


class ReducedByTorch(NoReduction):
    """For a forward whose gradients torch averages, in its own hooks."""

    def __init__(self, module: nn.Module) -> None: ...


class ShardedCall(RoutedCall):
    """A routed call of a module whose parameters all ranks put together, in each forward and in each trial."""

    def __call__(self, *args: Any, **kwargs: Any) -> Any:
        if region.alone():
            raise RuntimeError(
                f"ddpify: {self.name} is called by one rank alone, which has a part of it; call it on every rank, or "
                "convert without --strategy fsdp2"
            )
        return super().__call__(*args, **kwargs)

    def tried(self) -> AbstractContextManager[None]:
        return whole(self.module)

    def _division(self, leaves: list[Any], spec: Form) -> Division:
        # Layers that some rows only go through would get a gradient on some ranks only, and torch sends no zeros.
        found = super()._division(leaves, spec)
        return _SIZES if found.sizes else found

    def _has_parts(self, reason: str, leaves: Sequence[Any]) -> bool:
        return False
