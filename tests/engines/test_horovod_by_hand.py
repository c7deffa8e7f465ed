"""Hand-written scripts that are moved between torch and Horovod take the steps that they took, with real Horovod."""

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
from tests.forked import free_port

SCRIPTS = Path(__file__).parent / "by_hand"
SPAWNED = Path(__file__).parents[1] / "e2e" / "by_hand"
# Sums of float32, and of what float16 keeps of a gradient.
TOLERANCE = {False: 1e-6, True: 1e-3}
LIMIT = 240  # seconds until a run that hangs is killed


@pytest.mark.nightly
@pytest.mark.parametrize(
    ("name", "words", "ranks"),
    [("functions", [], 2), ("functions", [], 3), ("functions", ["--fp16-allreduce"], 2), ("trainer", [], 3)],
)
def test_from_horovod_to_torch(name: str, words: list[str], ranks: int, tmp_path: Path) -> None:
    source = (SCRIPTS / f"{name}.py").read_text()
    [result] = convert({Path("train.py"): source}, "cpu").values()
    assert "DistributedDataParallel" in result.code and "import horovod" not in result.code, result
    expected = by_horovodrun(source, words, ranks, tmp_path / "before")
    assert_same(expected, by_torchrun(result.code, words, ranks, tmp_path / "after"), TOLERANCE[bool(words)])


@pytest.mark.nightly
@pytest.mark.parametrize("ranks", [2, 3])
def test_from_torch_to_horovod(ranks: int, tmp_path: Path) -> None:
    source = (SCRIPTS / "eager.py").read_text()
    [result] = convert({Path("train.py"): source}, "horovod").values()
    assert "hvd.DistributedOptimizer" in result.code and "torch.distributed as dist" not in result.code, result
    expected = by_torchrun(source, [], ranks, tmp_path / "before")
    assert_same(expected, by_horovodrun(result.code, [], ranks, tmp_path / "after"), TOLERANCE[False])


@pytest.mark.nightly
@pytest.mark.parametrize("ranks", [2, 3])
def test_what_spawned_its_processes_is_started_by_horovodrun(ranks: int, tmp_path: Path) -> None:
    source = (SPAWNED / "spawned.gloo.py").read_text()
    assert "run_demo(demo_checkpoint, 2)" in source
    source = source.replace("run_demo(demo_checkpoint, 2)", f"run_demo(demo_checkpoint, {ranks})")
    [result] = convert({Path("train.py"): source}, "horovod").values()
    assert "hvd.init()" in result.code and "torch.distributed" not in result.code, result
    (tmp_path / "before").mkdir()
    (tmp_path / "before" / "train.py").write_text(source)
    command = [sys.executable, "train.py", free_port()]
    environment = {**os.environ, "OMP_NUM_THREADS": "1"}
    done = subprocess.run(
        command, cwd=tmp_path / "before", env=environment, capture_output=True, text=True, timeout=LIMIT, check=False
    )
    assert done.returncode == 0, done.stderr
    expected = read(tmp_path / "before", ranks)
    found = by_horovodrun(result.code, ["no_port"], ranks, tmp_path / "after")
    for ours, theirs in zip(found, expected, strict=True):
        torch.testing.assert_close(ours, theirs, rtol=TOLERANCE[False], atol=TOLERANCE[False])


def by_horovodrun(code: str, words: list[str], ranks: int, folder: Path) -> list[Any]:
    folder.mkdir()
    (folder / "train.py").write_text(code, encoding="utf-8")
    rc, _, stderr = start(["train.py", *words], ranks, folder, {})
    assert rc == 0, stderr
    return read(folder, ranks)


def by_torchrun(code: str, words: list[str], ranks: int, folder: Path) -> list[Any]:
    folder.mkdir()
    (folder / "train.py").write_text(code, encoding="utf-8")
    command = [sys.executable, *processes.torchrun(ranks), "train.py", *words]
    environment = {**os.environ, "OMP_NUM_THREADS": "1"}
    done = subprocess.run(
        command, cwd=folder, env=environment, capture_output=True, text=True, timeout=LIMIT, check=False
    )
    assert done.returncode == 0, done.stderr
    return read(folder, ranks)


def read(folder: Path, ranks: int) -> list[Any]:
    """What each rank has written: the model after every step, and what collectives gave."""
    return [torch.load(folder / f"rank{rank}.pt") for rank in range(ranks)]


def assert_same(expected: list[Any], found: list[Any], tolerance: float) -> None:
    for (steps, numbers), (others, theirs) in zip(expected, found, strict=True):
        assert len(steps) == len(others) > 3 and not torch.equal(steps[0][0], steps[-1][0])
        torch.testing.assert_close(others, steps, rtol=tolerance, atol=tolerance)
        torch.testing.assert_close(theirs, numbers, rtol=tolerance, atol=tolerance)
