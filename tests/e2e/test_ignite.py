"""Conversions to the words of Ignite, run by the real one, train what one process trains on the same batches."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from pathlib import Path

import pytest

from tests import forked
from tests.e2e import fixtures, harness
from tests.e2e.test_plain import differences, plain

INTERPRETER = (*harness.INTERPRETER, "ignite.distributed")


def in_forks(
    words: Sequence[str], world_size: int, folder: Path, environment: Mapping[str, str], limit: float
) -> tuple[int, str, str]:
    """Run a script in processes as torchrun would start them, that have imported Ignite."""
    return forked.start(words, world_size, folder, environment, limit, INTERPRETER)


# A main guard's block, BatchNorm with evaluations, gradients that accumulate, work at the top level, coupled samples.
USUAL = frozenset({"main_guard", "batchnorm", "grad_accumulation", "cuda_everywhere", "contrastive"})
# Batches that are padded to the longest of all ranks need a loader of their own class, and what a sampler draws by
# weights a sampler of its own: auto_dataloader has others.
REFUSED = frozenset({"masked_rnn", "sorted_rnn", "random_split"})
NAMES = tuple(name for name in fixtures.plain_names() if name not in REFUSED)


@pytest.mark.parametrize(
    ("name", "ranks"),
    [
        pytest.param(name, ranks, marks=[] if ranks == 2 and name in USUAL else pytest.mark.nightly)
        for name in NAMES
        for ranks in (2, 3)
    ],
)
def test_conversion_trains_the_same(name: str, ranks: int) -> None:
    fixture = fixtures.load(name)
    found = differences(fixture, ranks, target="ignite", start=in_forks)
    if found and "fails" not in found[0]:  # a ReLU that rounding turns over: in float64 it does not
        found = differences(fixture, ranks, precise=True, target="ignite", start=in_forks)
    assert not found, "\n".join(found)


@pytest.mark.parametrize(
    ("right", "wrong"),
    [
        pytest.param(b"idist.auto_model(model)", b"model", id="model"),
        pytest.param(b"total = idist.all_reduce(total)\n", b"pass\n", id="numbers", marks=pytest.mark.nightly),
        pytest.param(
            b"sampler=range(idist.get_rank(), len(test_set), idist.get_world_size())",
            b"sampler=DistributedSampler(test_set, shuffle=False)",
            id="evaluation",
            marks=pytest.mark.nightly,
        ),
    ],
)
def test_what_goes_wrong_is_seen(right: bytes, wrong: bytes, monkeypatch: pytest.MonkeyPatch) -> None:
    fixture = fixtures.load("main_guard")
    code = plain(fixture.name, "ignite")[fixture.entry]
    assert right in code
    changed = b"from torch.utils.data.distributed import DistributedSampler\n" + code.replace(right, wrong)
    monkeypatch.setattr("tests.e2e.test_plain.of_fixture", lambda fixture, target: {fixture.entry: changed})
    assert differences(fixture, 3, target="ignite", start=in_forks)


@pytest.mark.nightly
def test_it_accepts_the_scripts_that_the_plain_style_does_and_imports_torch_and_ignite_alone() -> None:
    converted = {name: plain(name, "ignite") for name in fixtures.names()}
    assert tuple(name for name, files in converted.items() if files) == NAMES
    assert not [name for name, files in converted.items() for code in files.values() if b"ddpify" in code]
