"""Lets a script train in float64, on batches in float64: what rounding makes of a ReLU can then not be seen."""

from __future__ import annotations

from typing import Any


def install() -> None:
    """Make float64 the default of new tensors, and that of what loaders give."""
    import torch
    from torch.utils._pytree import tree_map
    from torch.utils.data.dataloader import _BaseDataLoaderIter as Pass

    torch.set_default_dtype(torch.float64)
    next_batch = Pass.__next__

    def doubled(self: Any) -> Any:
        return tree_map(_doubled, next_batch(self))

    def _doubled(value: Any) -> Any:
        return value.double() if isinstance(value, torch.Tensor) and value.dtype == torch.float32 else value

    Pass.__next__ = doubled  # type: ignore[method-assign]
