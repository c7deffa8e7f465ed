"""Starting and ending: real processes, real torchrun."""

from __future__ import annotations

import os
import subprocess
import sys
from pathlib import Path

import pytest

SCRIPT = """
import random, sys
import numpy as np, torch
from ddpify_runtime import DistributedDataParallel, destroy_process_group, get_rank, get_world_size
from ddpify_runtime import init_process_group, rank_zero_path
init_process_group("gloo")
print("world", get_world_size(), sys.argv[1:])
model = DistributedDataParallel(torch.nn.Linear(4, 2))
optimizer = torch.optim.SGD(model.parameters(), lr=0.1)
for _ in range(3):
    model(torch.randn(6, 4)).sum().backward()
    optimizer.step()
with open(f"rank{get_rank()}", "w") as file:
    file.write(f"{torch.rand(())} {np.random.rand()} {random.random()} {model.weight.sum()}")
{end}
"""


def start(folder: Path, end: str, *launcher: str, **environ: str) -> subprocess.CompletedProcess[str]:
    (folder / "train.py").write_text(SCRIPT.replace("{end}", end))
    command = [sys.executable, *launcher, "train.py", "--x", "1"]
    return subprocess.run(
        command,
        cwd=folder,
        env=os.environ | {"OMP_NUM_THREADS": "1"} | environ,
        capture_output=True,
        text=True,
        timeout=120,
    )


TORCHRUN = ("-m", "torch.distributed.run", "--standalone", "--nproc-per-node", "2")


def test_torchrun_prints_once_and_shares_the_random_states(tmp_path: Path) -> None:
    done = start(tmp_path, "destroy_process_group()", *TORCHRUN)
    assert done.returncode == 0, done.stderr
    assert done.stdout == "world 2 ['--x', '1']\n"
    assert (tmp_path / "rank0").read_text() == (tmp_path / "rank1").read_text()


@pytest.mark.nightly
def test_starts_its_own_processes_when_asked_to(tmp_path: Path) -> None:
    done = start(tmp_path, "", DDPIFY_NPROC="2")
    assert done.returncode == 0, done.stderr
    assert done.stdout == "world 2 ['--x', '1']\n"
    assert (tmp_path / "rank0").read_text() == (tmp_path / "rank1").read_text()


SPAWN = ["-m", "ddpify_runtime.launch.spawn", "2"]


@pytest.mark.parametrize(
    "begin",
    [
        ["-m", "a.train"],
        pytest.param([*SPAWN, "a/train.py"], marks=pytest.mark.nightly),
        pytest.param(["a/train.py"], marks=pytest.mark.nightly),
        pytest.param([*SPAWN, "-m", "a.train"], marks=pytest.mark.nightly),
    ],
)
def test_a_script_keeps_its_own_options_and_its_folder(begin: list[str], tmp_path: Path) -> None:
    """torchrun would take `--s` for an ambiguous --standalone, and a script that changes folders is started again."""
    (tmp_path / "a").mkdir()
    text = """\
import os, sys
import ddpify_runtime
os.chdir("a")
ddpify_runtime.init_process_group("gloo")
print(ddpify_runtime.get_world_size(), sys.argv[1:], os.path.relpath(os.getcwd(), sys.argv[-1]))
ddpify_runtime.destroy_process_group()
"""
    (tmp_path / "a" / "train.py").write_text(text)
    words = ["--s", "0.1", "--no", "--", "--m", "-m", str(tmp_path)]
    command, settings = [sys.executable, *begin, *words], os.environ | {"OMP_NUM_THREADS": "1", "DDPIFY_NPROC": "2"}
    done = subprocess.run(command, cwd=tmp_path, env=settings, capture_output=True, text=True, timeout=120)
    assert (done.returncode, done.stdout) == (0, f"2 {words} a\n"), done.stderr


def test_what_a_script_does_at_its_exit_is_done_once(tmp_path: Path) -> None:
    end = """import atexit
def at_end():
    with open(rank_zero_path("end"), "a") as file:
        file.write("ended")
    print("bye")
atexit.register(at_end)
destroy_process_group()"""
    done = start(tmp_path, end, *TORCHRUN)
    assert (done.returncode, done.stdout.count("bye")) == (0, 1), done.stderr
    assert (tmp_path / "end").read_text() == "ended"


def test_alone_there_is_no_process_group(tmp_path: Path) -> None:
    done = start(tmp_path, "import torch.distributed as dist; print(dist.is_initialized())")
    assert done.stdout == "world 1 ['--x', '1']\nFalse\n"


@pytest.mark.nightly
def test_exit_codes_and_tracebacks_come_through(tmp_path: Path) -> None:
    done = start(tmp_path, "sys.exit(0)", *TORCHRUN)
    assert done.returncode == 0, done.stderr
    done = start(tmp_path, "if get_rank() == 1: raise ValueError('rank 1 is unwell')", *TORCHRUN)
    assert done.returncode == 1
    assert "rank 1 is unwell" in done.stderr


WITHOUT_NUMPY = """
import importlib.util, os, torch, ddpify_runtime
assert importlib.util.find_spec("numpy").origin.startswith(os.getcwd())  # where one lies that cannot be imported
torch.manual_seed(int(os.environ.get("RANK", 0)))
ddpify_runtime.init_process_group("gloo")
x = torch.randn(30, 4)
loader = ddpify_runtime.DataLoader(torch.utils.data.TensorDataset(x, x), batch_size=8, shuffle=True)
model = ddpify_runtime.DistributedDataParallel(torch.nn.Linear(4, 4))
optimizer = torch.optim.SGD(model.parameters(), lr=0.1)
for inputs, wanted in loader:
    optimizer.zero_grad()
    torch.nn.functional.mse_loss(model(inputs), wanted).backward()
    optimizer.step()
value = ddpify_runtime.rank_zero_value(lambda: sum(each.sum().item() for each in model.parameters()))()
open(f"rank{ddpify_runtime.get_rank()} of {ddpify_runtime.get_world_size()}", "w").write(str(value))
ddpify_runtime.destroy_process_group()
"""


@pytest.mark.nightly
def test_numpy_is_not_needed(tmp_path: Path) -> None:
    """In interpreters, torchrun's too, in which it cannot be imported."""
    (tmp_path / "numpy.py").write_text("raise ModuleNotFoundError('there is no numpy')")
    (tmp_path / "train.py").write_text(WITHOUT_NUMPY)
    paths = os.pathsep.join([str(tmp_path), os.environ.get("PYTHONPATH", "")])
    for processes in ("1", "2"):
        settings = {"OMP_NUM_THREADS": "1", "DDPIFY_CHECK": "1", "PYTHONPATH": paths, "DDPIFY_NPROC": processes}
        done = subprocess.run(
            [sys.executable, "train.py"], cwd=tmp_path, env=os.environ | settings, capture_output=True, text=True,
            timeout=120, check=False,
        )  # fmt: skip
        assert done.returncode == 0, done.stderr
    alone, first, second = (float((tmp_path / name).read_text()) for name in ("rank0 of 1", "rank0 of 2", "rank1 of 2"))
    assert first == second
    assert first == pytest.approx(alone, rel=1e-5)
