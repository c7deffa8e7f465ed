"""A copy of a module and of its inputs in which every tensor is another one: on the host, or in float64."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

from torch import Tensor, nn

from ..forward.compiled import copied
from ..torch_internals import tree_leaves


def changed(
    module: nn.Module, leaves: Sequence[Any], change: Callable[[Tensor], Tensor]
) -> tuple[nn.Module, list[Any]]:
    """A module and its inputs with changed tensors, alike in all else; what the module holds twice stays one."""
    memo: dict[int, Any] = {}
    for part in module.modules():
        for value in tree_leaves(list(vars(part).values())):
            if isinstance(value, nn.Parameter):
                memo[id(value)] = nn.Parameter(change(value.detach()), value.requires_grad)
            elif isinstance(value, Tensor):
                memo[id(value)] = change(value.detach()).requires_grad_(value.requires_grad)
    return copied(module, memo), [
        change(leaf.detach()).requires_grad_(leaf.requires_grad) if isinstance(leaf, Tensor) else leaf
        for leaf in leaves
    ]


def on_host(tensor: Tensor) -> Tensor:
    """On the CPU, where nothing has to be compiled to try something."""
    return tensor.cpu()


def in_float64(tensor: Tensor) -> Tensor:
    """Where rounding is too small to be taken for anything else."""
    return tensor.double() if tensor.is_floating_point() else tensor.clone()
