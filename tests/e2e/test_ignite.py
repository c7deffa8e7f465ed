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


@pytest.mark.parametrize("ranks", [2, pytest.param(3, marks=pytest.mark.nightly)])
@pytest.mark.parametrize("name", [name for name in fixtures.names() if plain(name, "ignite")])
def test_conversion_trains_the_same(name: str, ranks: int) -> None:
    fixture = fixtures.load(name)
    found = differences(fixture, ranks, target="ignite", start=in_forks)
    if found and "fails" not in found[0]:  # a ReLU that rounding turns over: in float64 it does not
        found = differences(fixture, ranks, precise=True, target="ignite", start=in_forks)
    assert not found, "\n".join(found)
