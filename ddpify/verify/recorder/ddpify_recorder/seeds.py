"""Unseeded scripts become comparable; each rank starts elsewhere, so that a missing broadcast shows (S1)."""

from __future__ import annotations

import contextlib
import os
import random

SEED = 1234


def seed() -> int:
    """Seed Python and numpy, before torch is imported; return the seed of this process."""
    rank = os.environ.get("RANK", os.environ.get("HOROVOD_RANK", "0"))
    value = int(os.environ.get("DDPIFY_SEED", SEED + int(rank)))
    random.seed(value)
    with contextlib.suppress(ImportError):
        import numpy

        numpy.random.seed(value)
    return value
