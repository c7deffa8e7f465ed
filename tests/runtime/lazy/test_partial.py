"""A count that is divided gives the number of one process, to the last bit: `if accuracy > best` decides by it (E5)."""

from __future__ import annotations

import torch
import torch.distributed as dist
from ddpify_runtime.lazy.partial import partial
from torch import Tensor

from tests.runtime.processes import run

SIZES = (37, 501, 1003)


def rates() -> list[bool]:
    """For hits that the ranks share in every way, whether their rates are those of one process."""
    same = []
    rank, world_size = dist.get_rank(), dist.get_world_size()
    for size in SIZES:
        hits = torch.tensor(float(size // 3 * 2))
        for others in range(0, int(hits), 17):
            mine = others if rank else int(hits) - others * (world_size - 1)
            count: Tensor = partial(torch.tensor(float(mine)), None, ())
            same += [
                (count / size).item() == (hits / size).item(),
                (100.0 * count / size).item() == (100.0 * hits / size).item(),
                (count / size + count / size).item() == (hits / size + hits / size).item(),
            ]
    return same


def test_equal_counts_are_equal_rates() -> None:
    for found in run(3, rates):
        assert len(found) > 100 and all(found)
