"""--xla-reduce: what it writes, and where it makes no sense."""

from __future__ import annotations

from pathlib import Path

from tests.ddpify.command import ROOT, TRAIN, ddpify, lines, put

EAGER = (ROOT / "tests" / "xla" / "scripts" / "torchrun.py").read_text()


def test_one_all_reduce(tmp_path: Path) -> None:
    put(tmp_path, train=TRAIN)
    ddpify("train.py", "--target", "xla", "--xla-reduce", "native", cwd=tmp_path)
    assert 'model = DistributedDataParallel(model, reduction="native")\n' in (tmp_path / "train.py").read_text()


def test_a_script_that_is_distributed_is_told(tmp_path: Path) -> None:
    put(tmp_path, train=EAGER)
    said = ddpify("train.py", "--target", "xla", "--xla-reduce", "native", cwd=tmp_path)
    assert any("this one keeps its DistributedDataParallel" in line for line in lines(said.stdout))


def test_another_target(tmp_path: Path) -> None:
    put(tmp_path, train=TRAIN)
    said = ddpify("train.py", "--target", "cpu", "--xla-reduce", "native", cwd=tmp_path, code=2)
    assert lines(said.stderr) == ["ddpify: --xla-reduce is for XLA devices, the target is cpu; add --target xla"]
