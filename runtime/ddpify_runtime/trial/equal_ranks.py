"""Whether the ranks hold the same batch and the same weights, as everything here relies on."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import torch
from torch import Tensor, nn

from ..fully_sharded.whole import is_sharded
from ..sharding.collectives import spread


def require_equal_inputs(leaves: Sequence[Any]) -> None:
    tensors = [leaf for leaf in leaves if isinstance(leaf, Tensor) and not leaf.is_complex()]
    tensors = [leaf for leaf in tensors if leaf.layout is torch.strided]
    numbers = [float(len(leaves)), *map(_digest, tensors[:15])]
    digest = torch.nan_to_num(torch.tensor(numbers, dtype=torch.float64, device="cpu"))
    digest = torch.cat([digest, digest.new_zeros(16 - len(digest))])
    if spread(digest).any():
        raise RuntimeError(
            "ddpify: the processes drew different batches, so they would train something else. Something in the "
            "script differs between processes: the order of a set (start with PYTHONHASHSEED=0), a seed taken from "
            "the time, or a generator without a seed"
        )


def require_equal_weights(module: nn.Module) -> None:
    """Before the first division only: later, what is computed outside of it may differ in the last digits on GPUs."""
    tensors = [p for p in module.parameters() if not (nn.parameter.is_lazy(p) or p.is_complex() or is_sharded(p))]
    sizes = [
        float(sum(len(name) for name, _ in module.named_parameters())),
        float(sum(tensor.numel() for tensor in tensors)),
    ]
    weights = sum((_digest(tensor, torch.float32) for tensor in tensors), 0.0)
    scale = sum((float(tensor.detach().abs().sum(dtype=torch.float32)) for tensor in tensors), 0.0)
    numbers = torch.tensor([*sizes, weights], dtype=torch.float64, device="cpu")
    difference = spread(torch.nan_to_num(numbers))
    if difference[:2].any() or float(difference[2]) > 1e-3 * scale:
        raise RuntimeError(
            f"ddpify: {type(module).__name__} is not the same on every process: its size or its first weights differ. "
            "Something in the script differs between processes: the order of a set (start with PYTHONHASHSEED=0), a "
            "seed taken from the time, a generator without a seed, or memory that nothing wrote (torch.FloatTensor(3))"
        )


def _digest(tensor: Tensor, dtype: torch.dtype = torch.float64) -> float:
    """A number that tells two tensors apart, also by the order of their values; computed in a type."""
    flat = tensor.detach().to(dtype).flatten()
    return float(flat @ torch.linspace(1, 2, len(flat), dtype=dtype, device=flat.device))
