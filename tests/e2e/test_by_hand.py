"""Hand-written DDP for GPUs, moved to CPUs, trains on real processes what its own hand-written form for CPUs trains."""

from __future__ import annotations

import os
import subprocess
import sys
from pathlib import Path

import pytest
import torch
from ddpify_codemods import convert

from tests.forked import free_port

SCRIPTS = Path(__file__).parent / "by_hand"
TORCHRUN = ("-m", "torch.distributed.run", "--standalone", "--nproc-per-node", "2", "--")
LIMIT = 240  # seconds until a run that hangs is killed
PATH = Path("train.py")
ENDS = str(Path(__file__).parents[1] / "past_the_end")
NAMES = ["launched", *(pytest.param(name, marks=pytest.mark.nightly) for name in ("spawned", "trainer", "imagenet"))]


def command(name: str, script: Path) -> list[str]:
    """How a script is started on two processes."""
    if name == "spawned for torchrun":
        return [sys.executable, *TORCHRUN, str(script), "no port"]
    if name == "spawned":
        return [sys.executable, str(script), free_port()]
    if name == "imagenet":
        return [sys.executable, str(script), "--dist-url", f"tcp://127.0.0.1:{free_port()}"]
    return [sys.executable, *TORCHRUN, str(script)]


def trained(name: str, code: str, folder: Path) -> list[list[torch.Tensor]]:
    """The parameters that each of two processes ends with."""
    folder.mkdir()
    script = folder / "train.py"
    script.write_text(code, encoding="utf-8")
    done = subprocess.run(
        command(name, script), cwd=folder, env={**os.environ, "OMP_NUM_THREADS": "1", "PYTHONPATH": ENDS},
        capture_output=True, text=True, timeout=LIMIT, check=False,
    )  # fmt: skip
    assert done.returncode == 0, done.stderr
    return [torch.load(folder / f"rank{rank}.pt", weights_only=True) for rank in range(2)]


@pytest.mark.parametrize("name", NAMES)
def test_moved_to_cpus_it_trains_what_is_trained_there_by_hand(name: str, tmp_path: Path) -> None:
    moved = convert({PATH: (SCRIPTS / f"{name}.cuda.py").read_text()}, "cpu")[PATH]
    assert not moved.findings
    expected = trained(name, (SCRIPTS / f"{name}.gloo.py").read_text(), tmp_path / "by_hand")
    found = trained(name, moved.code, tmp_path / "moved")
    for ranks in zip(*expected, *found, strict=True):
        assert all(torch.equal(each, ranks[0]) for each in ranks)


def test_made_for_torchrun_it_trains_what_it_trained_by_spawn(tmp_path: Path) -> None:
    text = (SCRIPTS / "spawned.gloo.py").read_text()
    moved = convert({PATH: text}, "cpu", entry="torchrun")[PATH]
    assert not moved.findings and "spawn" not in moved.code.replace("by spawn", "")
    expected = trained("spawned", text, tmp_path / "by_hand")
    found = trained("spawned for torchrun", moved.code, tmp_path / "moved")
    for ranks in zip(*expected, *found, strict=True):
        assert all(torch.equal(each, ranks[0]) for each in ranks)


@pytest.mark.parametrize("name", ["launched", "trainer", "spawned", "imagenet"])
@pytest.mark.parametrize(("form", "target"), [("gloo", "cpu"), ("cuda", "cuda")])
def test_what_is_right_already_stays(name: str, form: str, target: str) -> None:
    text = (SCRIPTS / f"{name}.{form}.py").read_text()
    if (name, form) == ("launched", "cuda"):  # torchrun gives it no --local_rank
        text = convert({PATH: text}, target)[PATH].code
    result = convert({PATH: text}, target)[PATH]
    assert (result.code, result.changes) == (text, ())
    assert [finding.rule for finding in result.findings if finding.severity == "refused"] == ["DDP302"]
    assert all(finding.distributed for finding in result.findings if finding.severity == "refused")  # exit code 0
