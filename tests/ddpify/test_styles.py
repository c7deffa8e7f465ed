"""`--style plain`, on the command line and in [tool.ddpify]."""

from __future__ import annotations

import subprocess
from pathlib import Path

import pytest

from tests.ddpify.command import ddpify, put

TRAIN = """\
import torch
from torch.utils.data import DataLoader, TensorDataset

torch.manual_seed(0)
dataset = TensorDataset(torch.rand(64, 4), torch.rand(64, 1))
loader = DataLoader(dataset, batch_size=8, shuffle=True)
model = torch.nn.Sequential(torch.nn.Linear(4, 8), torch.nn.BatchNorm1d(8), torch.nn.Linear(8, 1))
optimizer = torch.optim.SGD(model.parameters(), lr=0.1)
for x, y in loader:
    loss = torch.nn.functional.mse_loss(model(x), y)
    optimizer.zero_grad()
    loss.backward()
    optimizer.step()
"""
ON_GPU = TRAIN.replace("torch.nn.Linear(8, 1))", "torch.nn.Linear(8, 1)).cuda()").replace(
    "(model(x), y)", "(model(x.cuda()), y.cuda())"
)


def told(done: subprocess.CompletedProcess[bytes]) -> str:
    """What a command has printed."""
    return (done.stdout + done.stderr).decode()


def test_plain_code_imports_torch_alone(tmp_path: Path) -> None:
    put(tmp_path, train=ON_GPU)
    done = ddpify("train.py", "--target", "cuda", "--style", "plain", cwd=tmp_path)
    code = (tmp_path / "train.py").read_text()
    assert done.returncode == 0 and "ddpify" not in code
    assert "DistributedDataParallel(model)" in code
    again = ddpify("train.py", "--target", "cuda", "--style", "plain", "--check", cwd=tmp_path)
    assert again.returncode == 0 and (tmp_path / "train.py").read_text() == code


def test_plain_code_goes_back_and_becomes_exact(tmp_path: Path) -> None:
    put(tmp_path, train=TRAIN)
    script = tmp_path / "train.py"
    assert ddpify("train.py", "--target", "cpu", "--style", "plain", cwd=tmp_path).returncode == 0
    plain = script.read_text()
    done = ddpify("train.py", "--style", "exact", cwd=tmp_path)  # for the target that it was converted for
    assert done.returncode == 0 and 'init_process_group("gloo")' in script.read_text()
    assert "from ddpify_runtime import" in script.read_text()
    script.write_text(plain)
    done = ddpify("train.py", "--target", "none", cwd=tmp_path)
    assert done.returncode == 0 and "converted train.py for one device" in told(done)
    assert script.read_text() == TRAIN
    script.write_text(plain.replace("optimizer =", "dist.all_reduce(model[0].weight.data)\noptimizer ="))
    for words in (("--target", "none"), ("--style", "exact")):
        done = ddpify("train.py", *words, cwd=tmp_path, code=2)
        assert "dist.all_reduce is used in a way of its own" in told(done)


def test_a_project_chooses_its_style(tmp_path: Path) -> None:
    (tmp_path / "pyproject.toml").write_text('[tool.ddpify]\ntarget = "cpu"\nstyle = "plain"\n')
    put(tmp_path, train=TRAIN)
    assert ddpify("train.py", cwd=tmp_path).returncode == 0
    assert "ddpify" not in (tmp_path / "train.py").read_text()


def test_options_of_the_plain_style(tmp_path: Path) -> None:
    put(tmp_path, train=ON_GPU)
    words = ("--style", "plain", "--batch-size", "per-process", "--sync-batchnorm")
    assert ddpify("train.py", "--target", "cuda", *words, cwd=tmp_path).returncode == 0
    code = (tmp_path / "train.py").read_text()
    assert "batch_size=8," in code and "convert_sync_batchnorm(model)" in code


@pytest.mark.parametrize(
    ("words", "said"),
    [
        (("--sync-batchnorm",), "--sync-batchnorm is for the plain style; add --style plain"),
        (
            ("--batch-norm", "local", "--sync-batchnorm"),
            "--batch-norm local is for the exact style, as --sync-batchnorm for the plain one; leave --batch-norm out",
        ),
        (
            ("--style", "plain", "--batch-norm", "batch"),
            "--batch-norm batch is for the exact style, as --sync-batchnorm for the plain one; leave --batch-norm out",
        ),
        (
            ("--style", "plain", "--batch-norm", "local"),
            "--batch-norm local is what --style plain does; leave --batch-norm out",
        ),
        (("--style", "plain", "--xla-reduce", "native"), "--xla-reduce is for the exact style"),
        (("--style", "plain", "--sync-batchnorm"), "torch synchronizes BatchNorm on GPUs, the target is cpu"),
    ],
)
def test_options_of_another_style_are_bad_input(tmp_path: Path, words: tuple[str, ...], said: str) -> None:
    put(tmp_path, train=TRAIN)
    done = ddpify("train.py", "--target", "cpu", *words, cwd=tmp_path, code=2)
    assert said in told(done)
    assert (tmp_path / "train.py").read_text() == TRAIN


def test_an_exact_conversion_becomes_a_plain_one(tmp_path: Path) -> None:
    put(tmp_path, train=TRAIN, direct=TRAIN)
    assert ddpify("train.py", "--target", "cuda", cwd=tmp_path).returncode == 0
    for name in ("train.py", "direct.py"):
        assert ddpify(name, "--target", "cpu", "--style", "plain", cwd=tmp_path).returncode == 0
    assert (tmp_path / "train.py").read_text() == (tmp_path / "direct.py").read_text()


def test_a_batch_size_of_each_process_in_the_exact_style(tmp_path: Path) -> None:
    put(tmp_path, train=TRAIN)
    words = ("--target", "cpu", "--batch-size", "per-process")
    assert "adapt the learning rate" in told(ddpify("train.py", *words, cwd=tmp_path))
    code = (tmp_path / "train.py").read_text()
    assert "batch_size=8 * get_world_size()," in code
    assert ddpify("train.py", *words, cwd=tmp_path).returncode == 0
    assert (tmp_path / "train.py").read_text() == code
    assert ddpify("train.py", "--target", "none", cwd=tmp_path).returncode == 0
    assert (tmp_path / "train.py").read_text() == TRAIN


def test_what_is_asked_of_a_converted_file_is_done(tmp_path: Path) -> None:
    put(tmp_path, train=TRAIN)
    asked = {
        ("--target", "cpu", "--style", "plain", "--batch-size", "per-process"): "batch_size=8,",
        ("--batch-size", "global"): "batch_size=8 // dist.get_world_size()",
        ("--entry", "spawn"): "from torch.distributed.run import main as torchrun",
        ("--target", "cpu", "--strategy", "fsdp2"): "fully_shard(model, mesh=mesh)",
        ("--strategy", "ddp"): "DistributedDataParallel(model",
        ("--style", "exact", "--batch-size", "per-process"): "batch_size=8 * get_world_size(),",
        ("--style", "exact", "--batch-size", "global"): "batch_size=8,",
    }
    for words, line in asked.items():
        assert ddpify("train.py", *words, cwd=tmp_path).returncode == 0
        assert line in (tmp_path / "train.py").read_text()


def test_a_script_that_starts_its_processes_keeps_to_it(tmp_path: Path) -> None:
    put(tmp_path, train=TRAIN)
    joined = {
        ("--target", "cpu", "--entry", "spawn"): 'init_process_group("gloo", nprocs=2)',
        ("--target", "cuda"): 'init_process_group("nccl", nprocs=torch.cuda.device_count())',
        ("--target", "mpi"): 'init_process_group("mpi")',
        ("--target", "xpu", "--entry", "spawn"): 'init_process_group("xccl", nprocs=torch.xpu.device_count())',
        ("--entry", "torchrun"): 'init_process_group("xccl")',
    }
    for words, line in joined.items():
        assert ddpify("train.py", *words, cwd=tmp_path).returncode == 0
        assert line in (tmp_path / "train.py").read_text().splitlines()
    assert ddpify("train.py", "--target", "none", cwd=tmp_path).returncode == 0
    assert (tmp_path / "train.py").read_text() == TRAIN


def test_mpirun_starts_the_processes_itself(tmp_path: Path) -> None:
    put(tmp_path, train=TRAIN)
    done = ddpify("train.py", "--target", "mpi", "--entry", "spawn", cwd=tmp_path, code=2)
    assert "start it with mpirun -np 2 python SCRIPT" in told(done)


def test_plain_code_starts_torchrun_for_itself(tmp_path: Path) -> None:
    put(tmp_path, train=ON_GPU)
    done = ddpify("train.py", "--target", "cuda", "--style", "plain", "--entry", "spawn", cwd=tmp_path)
    assert "start it with: python train.py" in told(done)
    started = '"--nproc-per-node", str(torch.cuda.device_count()), "--", *sys.argv])'
    assert started in (tmp_path / "train.py").read_text()
    assert ddpify("train.py", "--target", "cpu", cwd=tmp_path).returncode == 0
    moved = (tmp_path / "train.py").read_text()
    assert started.replace("str(torch.cuda.device_count())", 'os.environ.get("NPROC", "2")') in moved
