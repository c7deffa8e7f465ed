"""--batch-norm: whose statistics BatchNorm takes, as an argument that the diff shows."""

from __future__ import annotations

from pathlib import Path

import pytest

from tests.ddpify.command import ROOT, TRAIN, ddpify, lines, put

EAGER = (ROOT / "tests" / "xla" / "scripts" / "torchrun.py").read_text()
LOCAL = "sync_batch_norm=False"


def text(folder: Path, *words: str) -> str:
    """The script after a run of the command."""
    ddpify("train.py", *words, cwd=folder)
    return (folder / "train.py").read_text()


@pytest.mark.parametrize(
    ("target", "arguments"),
    [("cpu", ""), ("cuda", "device_ids=[get_local_rank()], "), ("xla", "gradient_as_bucket_view=True, ")],
)
def test_local_statistics_are_an_argument(tmp_path: Path, target: str, arguments: str) -> None:
    put(tmp_path, train=TRAIN)
    once = text(tmp_path, "--target", target, "--batch-norm", "local")
    assert f"    model = DistributedDataParallel(model, {arguments}{LOCAL})\n" in once
    assert text(tmp_path, "--batch-norm", "local") == once
    assert text(tmp_path) == once  # what was chosen stays
    assert text(tmp_path, "--target", target) == once


def test_the_default_is_the_batch(tmp_path: Path) -> None:
    put(tmp_path, train=TRAIN)
    once = text(tmp_path, "--target", "cpu")
    assert LOCAL not in once
    assert text(tmp_path, "--batch-norm", "batch") == once
    assert text(tmp_path, "--batch-norm", "local") == once.replace("Parallel(model)", f"Parallel(model, {LOCAL})")
    assert text(tmp_path, "--batch-norm", "batch") == once


def test_it_moves_along(tmp_path: Path) -> None:
    put(tmp_path, train=TRAIN)
    wanted = text(tmp_path, "--target", "xla", "--batch-norm", "local")
    put(tmp_path, train=TRAIN)
    text(tmp_path, "--target", "cuda", "--batch-norm", "local")
    assert text(tmp_path, "--target", "xla") == wanted
    assert text(tmp_path, "--target", "none") == TRAIN


def test_with_one_all_reduce(tmp_path: Path) -> None:
    put(tmp_path, train=TRAIN)
    words = ("--target", "xla", "--xla-reduce", "native", "--batch-norm", "local")
    once = text(tmp_path, *words)
    assert f'DistributedDataParallel(model, reduction="native", {LOCAL})\n' in once
    assert text(tmp_path, *words) == once


def test_a_project_may_choose_it(tmp_path: Path) -> None:
    put(tmp_path, train=TRAIN)
    (tmp_path / "pyproject.toml").write_text('[tool.ddpify]\ntarget = "cpu"\nbatch-norm = "local"\n')
    once = text(tmp_path)
    assert f"DistributedDataParallel(model, {LOCAL})" in once
    ddpify(".", "--check", cwd=tmp_path)
    assert LOCAL not in text(tmp_path, "--batch-norm", "batch")


def test_another_word_in_the_project(tmp_path: Path) -> None:
    put(tmp_path, train=TRAIN)
    (tmp_path / "pyproject.toml").write_text('[tool.ddpify]\ntarget = "cpu"\nbatch-norm = "sync"\n')
    said = ddpify("train.py", cwd=tmp_path, code=2)
    assert lines(said.stderr) == ["pyproject.toml: [tool.ddpify] batch-norm is 'sync'; write one of batch, local"]


def test_a_script_that_is_distributed_keeps_its_arguments(tmp_path: Path) -> None:
    put(tmp_path, train=EAGER)
    assert LOCAL not in text(tmp_path, "--target", "xla", "--batch-norm", "local")
