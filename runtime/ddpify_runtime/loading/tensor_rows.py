"""Samples of torch's own TensorDataset, taken from its tensors at once: nothing of the script's runs to load them.

One index for each tensor, rather than one for each sample and a stack of them; the same numbers in the same order.
"""

from __future__ import annotations

from array import array
from collections.abc import Sequence
from typing import Any

import torch
from torch import Tensor
from torch.utils.data import Subset, TensorDataset


def are_rows(dataset: Any) -> bool:
    """Whether a data set is made of tensors alone."""
    while type(dataset) is Subset:
        dataset = dataset.dataset
    return type(dataset) is TensorDataset


def batch_of(dataset: Any, indices: Sequence[Any]) -> list[Tensor] | None:
    """What default_collate makes of these samples; None for another kind of data set, or of index."""
    while type(dataset) is Subset:
        dataset, indices = dataset.dataset, [dataset.indices[index] for index in indices]
    if type(dataset) is not TensorDataset or {*map(type, indices)} != {int} or min(indices) < 0:
        return None
    if any(type(tensor) is not Tensor or tensor.layout is not torch.strided for tensor in dataset.tensors):
        return None
    rows = torch.frombuffer(array("q", indices), dtype=torch.int64)  # torch.tensor() takes four times as long
    return [tensor.index_select(0, rows.to(tensor.device)) for tensor in dataset.tensors]
