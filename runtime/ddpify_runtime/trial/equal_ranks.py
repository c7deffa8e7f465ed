"""Whether the ranks hold the same batch and the same weights, as everything here relies on."""

from __future__ import annotations

from collections.abc import Sequence
from threading import current_thread, main_thread
from typing import Any

import torch
from torch import Tensor, nn

from ..forward import region
from ..fully_sharded.whole import is_sharded
from ..sharding.collectives import are_played, spread

_labels_left = 3  # how many are still looked at


def require_equal_inputs(leaves: Sequence[Any]) -> None:
    tensors = [leaf for leaf in leaves if isinstance(leaf, Tensor) and not leaf.is_complex()]
    tensors = [leaf for leaf in tensors if leaf.layout is torch.strided and not (leaf.is_nested or leaf.is_quantized)]
    digest = torch.zeros(16, dtype=torch.float64, device="cpu")
    digest[0] = len(leaves)
    for place, tensor in enumerate(tensors):
        digest[1 + place % 15] += (1 + place) * _digest(tensor)
    if spread(torch.nan_to_num(digest)).any():
        raise RuntimeError(
            "ddpify: the processes drew different batches, so they would train something else. Something in the "
            "script differs between processes: the order of a set (start with PYTHONHASHSEED=0), a seed taken from "
            "the time, or a generator without a seed"
        )


def require_equal_labels(labels: Tensor) -> None:
    """Of the first integers that meet rows of outputs whole: labels that no loader has shown. A collective then."""
    global _labels_left
    if not _labels_left or labels.is_floating_point() or current_thread() is not main_thread():
        return
    if not region.alone() and not are_played():
        _labels_left -= 1
        require_equal_inputs([labels])


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
