"""Parts of the optimizer's state and of the model on GPUs (docs/sharding.md): what one GPU trains."""

from __future__ import annotations

from dataclasses import replace

import pytest

from ddpify.verify import compare
from tests.e2e import fixtures
from tests.e2e.test_plain import differences
from tests.gpu.ranks import start
from tests.gpu.test_equivalence import TOLERANCE, on_gpus

SHARDED = {"fully_sharded": True}
OPTIMIZER = {"optimizer_sharding": True}


@pytest.mark.parametrize(
    ("name", "options"),
    [
        *((name, SHARDED) for name in ("main_guard", "ragged", "dropout", "triplet")),
        *((name, OPTIMIZER) for name in ("resume", "onecycle", "gan")),
    ],
)
def test_exact_trains_the_same(name: str, options: dict[str, bool]) -> None:
    fixture = replace(fixtures.load(name), compile=True)  # FSDP2 imports what compiles
    original = on_gpus(fixture)
    for ranks in (2, 3):
        run = on_gpus(fixture, ranks, target="cuda", **options)
        found = [*compare.equivalent(original, run, ranks, max(fixture.tolerance, TOLERANCE))]
        assert not found, "\n".join([*found, run.stderr[-3000:]])


@pytest.mark.parametrize(
    ("name", "options"), [("main_guard", SHARDED), ("resume", OPTIMIZER), ("frozen_backbone", OPTIMIZER)]
)
def test_plain_trains_the_same(name: str, options: dict[str, bool]) -> None:
    fixture = replace(fixtures.load(name), cuda_shim=False, compile=True)
    found = differences(
        fixture, 2, pretend=fixture.pretend_on_gpu, target="cuda", start=start, start_original=start, **options
    )
    # A state dict that was put together lacks `_metadata`, and loads without; only DistributedDataParallel is counted.
    known = ("_metadata", "nothing was divided") if options is SHARDED else ("_metadata",)
    assert not [each for each in found if not any(word in each for word in known)], "\n".join(found)
