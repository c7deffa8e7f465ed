"""`--entry spawn`: `python train.py` starts its processes itself, and under torchrun it starts none."""

from __future__ import annotations

import os
import subprocess
import sys
from pathlib import Path

import pytest
from ddpify_codemods import convert

PATH = Path("train.py")
SCRIPT = """\
import os
import sys

import torch
from torch.utils.data import DataLoader, TensorDataset


def main():
    torch.manual_seed(0)
    data = TensorDataset(torch.randn(24, 4), torch.randn(24, 1))
    model = torch.nn.Linear(4, 1)
    optimizer = torch.optim.SGD(model.parameters(), lr=0.1)
    for x, y in DataLoader(data, batch_size=8, shuffle=True):
        optimizer.zero_grad()
        torch.nn.functional.mse_loss(model(x), y).backward()
        optimizer.step()
    print(os.environ.get("WORLD_SIZE"), sys.argv[1:], [f"{each:.5f}" for each in model.weight[0].tolist()])
    if "--fail" in sys.argv:
        raise ValueError("on purpose")


if __name__ == "__main__":
    main()
"""
ENDS = str(Path(__file__).parents[1] / "past_the_end")
TORCHRUN = ("-m", "torch.distributed.run", "--standalone", "--nproc-per-node", "3", "--")


def started(
    folder: Path, style: str, *words: str, launcher: tuple[str, ...] = (), per_process: bool = False
) -> subprocess.CompletedProcess[str]:
    script = folder / "train.py"
    converted = convert({PATH: SCRIPT}, "cpu", style=style, entry="spawn", per_process=per_process)[PATH]
    script.write_text(converted.code, encoding="utf-8")
    known = {name: value for name, value in os.environ.items() if name not in ("NPROC", "DDPIFY_NPROC")}
    ends = {"PYTHONPATH": ENDS} if style == "plain" and "--fail" not in words else {}
    return subprocess.run(
        [sys.executable, *launcher, str(script), *words], cwd=folder, env=known | ends | {"OMP_NUM_THREADS": "1"},
        capture_output=True, text=True, timeout=240, check=False,
    )  # fmt: skip


@pytest.mark.parametrize("style", ["exact", "plain"])
def test_python_starts_the_processes(style: str, tmp_path: Path) -> None:
    done = started(tmp_path, style, "--s", "1")
    assert done.returncode == 0, done.stderr
    [line] = done.stdout.splitlines()
    assert line.startswith("2 ['--s', '1'] [")


@pytest.mark.nightly
@pytest.mark.parametrize("style", ["exact", "plain"])
def test_torchrun_starts_them_where_it_is_asked(style: str, tmp_path: Path) -> None:
    done = started(tmp_path, style, launcher=TORCHRUN)
    assert done.returncode == 0, done.stderr
    [line] = done.stdout.splitlines()
    assert line.startswith("3 [] [")


@pytest.mark.nightly
@pytest.mark.parametrize("style", ["exact", "plain"])
def test_a_failure_comes_out(style: str, tmp_path: Path) -> None:
    done = started(tmp_path, style, "--fail")
    assert done.returncode == 1
    assert done.stderr.count("ValueError: on purpose") >= 1


@pytest.mark.nightly
def test_a_batch_size_of_each_process_is_a_larger_batch(tmp_path: Path) -> None:
    """Two processes with 8 samples each, against one with 16 (D5)."""
    done = started(tmp_path, "exact", per_process=True)
    assert done.returncode == 0, done.stderr
    alone = subprocess.run(
        [sys.executable, "-c", SCRIPT.replace("batch_size=8", "batch_size=16")],
        capture_output=True,
        text=True,
        check=True,
    )
    assert done.stdout.partition("[")[2] == alone.stdout.partition("[")[2] != ""
