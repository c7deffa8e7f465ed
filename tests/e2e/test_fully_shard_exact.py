"""With --strategy fsdp2 a conversion trains, prints and saves what one process does, in the exact style."""

from __future__ import annotations

import pytest

from ddpify.verify import compare
from tests.e2e import fixtures, harness

nightly = pytest.mark.nightly
NAMES = [
    *("augmentation", "batch_decisions", "batch_larger_than_data", "config_file", "cuda_everywhere", "custom_sampler"),
    *("dropout", "globals_in_functions", "graph", "in_memory", "inline_dataset", "iterable", "loaders_from_helper"),
    *("loggers", "main_guard", "masked_rnn", "module_level", "onecycle", "ragged", "random_split"),
    *("saved_images", "search", "siamese", "sorted_rnn", "tqdm_bars", "triplet", "two_forwards_two_backwards"),
    "two_loaders_zip",
]
WHOLE = {"masked_rnn"}  # its sizes depend on its samples
OFTEN = [("main_guard", 2), ("ragged", 3)]
RARELY = [(name, ranks) for name in NAMES for ranks in (0, 2, 3) if (name, ranks) not in OFTEN]


@pytest.mark.parametrize(("name", "ranks"), [*OFTEN, *(pytest.param(*each, marks=nightly) for each in RARELY)])
def test_it_trains_the_same(name: str, ranks: int) -> None:
    """Of every fixture that is not refused, there or in the run (loss_only_forward). ranks: 0 for one process."""
    fixture = fixtures.load(name)
    changed = fixtures.converted(fixture, "cpu", fully_sharded=True)
    assert any(b"fully_shard(" in code for code in changed.values())
    original = harness.run_original(fixture)
    files = {name: path.read_bytes() for name, path in fixtures.files(fixture).items()}
    run = harness.run_sources(fixture, files | changed, ranks, settings={"DDPIFY_PRETEND": ""})
    assert run.rc == 0, run.stderr[-3000:]
    if ranks:
        found = [*compare.equivalent(original, run, ranks, fixture.tolerance)]
        found += compare.divided(run) if fixture.divided and name not in WHOLE else ()
    else:
        found = [*compare.identical(original, run)]
    assert not found, "\n".join([*found, run.stderr[-3000:]])
