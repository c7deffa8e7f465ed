"""Horovod scripts that are moved to torch take the steps that they took: the real Horovod against torchrun."""

from __future__ import annotations

import os
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest
import torch
from ddpify_codemods import convert

from ddpify.verify import processes
from tests.engines.test_horovod import start

SCRIPTS = Path(__file__).parent / "by_hand"
# Sums of float32, and of what float16 keeps of a gradient.
TOLERANCE = {False: 1e-6, True: 1e-3}
LIMIT = 240  # seconds until a run that hangs is killed


@pytest.mark.nightly
@pytest.mark.parametrize(
    ("name", "words", "ranks"),
    [("functions", [], 2), ("functions", [], 3), ("functions", ["--fp16-allreduce"], 2), ("trainer", [], 3)],
)
def test_it_takes_the_steps_that_it_took(name: str, words: list[str], ranks: int, tmp_path: Path) -> None:
    source = (SCRIPTS / f"{name}.py").read_text()
    [result] = convert({Path("train.py"): source}, "cpu").values()
    assert "DistributedDataParallel" in result.code and "horovod" not in result.code.replace("Horovod", ""), result
    folder = written(source, tmp_path / "horovod")
    rc, _, stderr = start(["train.py", *words], ranks, folder, {})
    assert rc == 0, stderr
    expected = read(folder, ranks)
    folder = written(result.code, tmp_path / "torch")
    command = [sys.executable, *processes.torchrun(ranks), "train.py", *words]
    environment = {**os.environ, "OMP_NUM_THREADS": "1"}
    done = subprocess.run(
        command, cwd=folder, env=environment, capture_output=True, text=True, timeout=LIMIT, check=False
    )
    assert done.returncode == 0, done.stderr
    found = read(folder, ranks)
    tolerance = TOLERANCE[bool(words)]
    for (steps, numbers), (others, their) in zip(expected, found, strict=True):
        assert len(steps) == len(others) > 3 and not torch.equal(steps[0][0], steps[-1][0])
        for one, other in zip(steps, others, strict=True):
            torch.testing.assert_close(other, one, rtol=tolerance, atol=tolerance)
        torch.testing.assert_close(their, numbers, rtol=tolerance, atol=tolerance)


def written(code: str, folder: Path) -> Path:
    folder.mkdir()
    (folder / "train.py").write_text(code, encoding="utf-8")
    return folder


def read(folder: Path, ranks: int) -> list[tuple[list[list[torch.Tensor]], list[Any]]]:
    """What each rank has written: the model after every step, and what collectives gave."""
    return [torch.load(folder / f"rank{rank}.pt") for rank in range(ranks)]
