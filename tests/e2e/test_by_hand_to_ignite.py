"""Hand-written DDP that is moved to the words of Ignite takes the very steps that it took, under the real Ignite."""

from __future__ import annotations

import os
import subprocess
import sys
from pathlib import Path

import pytest
import torch
from ddpify_codemods import convert

from ddpify.verify import processes
from tests.forked import free_port

SCRIPTS = Path(__file__).parents[1] / "xla" / "scripts"
SPAWNS, TORCHRUN = [sys.executable], [sys.executable, *processes.torchrun(2)]


@pytest.mark.nightly
@pytest.mark.parametrize(("name", "launcher"), [("spawned.py", SPAWNS), ("torchrun.py", TORCHRUN)])
def test_it_takes_the_same_steps(name: str, launcher: list[str], tmp_path: Path) -> None:
    source = (SCRIPTS / name).read_text()
    [result] = convert({tmp_path / name: source}, "ignite").values()
    assert "idist" in result.code and "DistributedDataParallel" not in result.code
    eager = weights(source, launcher, tmp_path / "eager")
    assert len(eager[0]) > 1 and not torch.equal(eager[0][0], eager[0][-1])
    moved = weights(result.code, launcher, tmp_path / "ignite")
    for one, other in zip(eager, moved, strict=True):
        assert len(one) == len(other) and all(map(torch.equal, one, other))


def weights(code: str, launcher: list[str], folder: Path) -> list[list[torch.Tensor]]:
    """All parameters after each step, as one tensor a step, of the two ranks of a script."""
    folder.mkdir()
    (folder / "train.py").write_text(code)
    port = free_port()
    environment = {**os.environ, "TEST_PORT": port, "MASTER_PORT": port, "OMP_NUM_THREADS": "1"}
    done = subprocess.run(
        [*launcher, "train.py", "."], cwd=folder, env=environment, capture_output=True, text=True, timeout=200
    )
    assert done.returncode == 0, done.stderr[-3000:]
    histories = [torch.load(folder / f"rank{rank}.pt") for rank in range(2)]
    return [[torch.cat([each.flatten() for each in step]) for step in history] for history in histories]
