"""Which way a program goes that is distributed by hand."""

from __future__ import annotations

from pathlib import Path

import pytest
from ddpify_codemods import convert

from tests.e2e import fixtures

PATH = Path("train.py")
SPAWNED = (fixtures.ROOT.parent / "tests" / "e2e" / "by_hand" / "spawned.cuda.py").read_text(encoding="utf-8")


@pytest.mark.parametrize(
    ("target", "entry", "word"),
    [
        ("xla", "", "torch_xla.launch("),
        ("horovod", "", "hvd.init()"),
        ("cpu", "", "mp.spawn("),
        ("cpu", "torchrun", 'demo_fn(int(os.environ["RANK"])'),
        ("mpi", "", "OMPI_COMM_WORLD_RANK"),
    ],
)
def test_ways(target: str, entry: str, word: str) -> None:
    result = convert({PATH: SPAWNED}, target, entry=entry)[PATH]
    assert word in result.code, result


@pytest.mark.parametrize("style", ["exact", "plain"])
def test_what_is_there_stays(style: str) -> None:
    result = convert({PATH: SPAWNED}, "cuda", style=style)[PATH]
    assert result.code == SPAWNED
