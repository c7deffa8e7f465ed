"""A loop over batches runs what each of them has recorded, as torch_xla's MpDeviceLoader does (X5).

A training step ends with a sync of its own; a loop that evaluates, and adds up on the device, would become one program
as long as the loop, to be compiled for each length.
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import torch_xla
from torch_xla.debug import metrics


class Steps:
    """An iterator over batches; runs what was recorded since the batch before, unless the script did."""

    def __init__(self, batches: Iterator[Any]) -> None:
        self.batches = batches
        self.syncs = -1

    def __iter__(self) -> Steps:
        return self

    def __len__(self) -> int:
        return len(self.batches)  # type: ignore[arg-type]

    def __next__(self) -> Any:
        if self.syncs == _syncs():
            torch_xla.sync()
        self.syncs = _syncs()
        return next(self.batches)

    def __getattr__(self, name: str) -> Any:
        return getattr(self.batches, name)


def _syncs() -> int:
    return metrics.counter_value("MarkStep") or 0
