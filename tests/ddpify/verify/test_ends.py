"""Why a run of several processes crashed or hung."""

from __future__ import annotations

import pytest

from ddpify.verify.ends import of_end
from ddpify.verify.runs import Record, Run


@pytest.mark.parametrize(
    ("stderr", "counts", "hazard"),
    [
        ("ValueError: sampler option is mutually exclusive with shuffle", [0, 0], "D3"),
        ("AttributeError: 'DistributedDataParallel' object has no attribute 'encode'", [1, 1], "M1"),
        ("RuntimeError: Expected to have finished reduction in the prior iteration", [1, 1], "M4"),
        ("error: unrecognized arguments: --local-rank=0", [0, 0], "P3"),
        ("[rank1]: Traceback (most recent call last):\n[rank1]: ValueError: no", [2, 2], "P8"),
        ("", [3, 5], "D19"),
        ("", [3, 3], None),
    ],
)
def test_its_last_words_tell(stderr: str, counts: list[int], hazard: str | None) -> None:
    run = Run(1, "", stderr, {rank: Record() for rank in range(2)}, {})
    found = of_end(run, counts)
    assert (found.id if found else None) == hazard
