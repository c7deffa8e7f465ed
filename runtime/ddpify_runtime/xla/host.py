"""A module and its inputs on the host, where trying something costs no compilation."""

from __future__ import annotations

from collections.abc import Sequence
from copy import deepcopy
from typing import Any

from torch import Tensor, nn
from torch.utils._pytree import tree_leaves


def on_host(module: nn.Module, leaves: Sequence[Any]) -> tuple[nn.Module, list[Any]]:
    """Copies of a module and of what it is given, on the CPU; alike in all else."""
    memo: dict[int, Any] = {}
    for part in module.modules():
        for value in tree_leaves(list(vars(part).values())):
            if isinstance(value, nn.Parameter):
                memo[id(value)] = nn.Parameter(value.detach().cpu(), value.requires_grad)
            elif isinstance(value, Tensor):
                memo[id(value)] = value.detach().cpu()
    return deepcopy(module, memo), [leaf.detach().cpu() if isinstance(leaf, Tensor) else leaf for leaf in leaves]
